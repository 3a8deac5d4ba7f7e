// What ThreadSanitizer must not report: GCC's OpenMP runtime and oneDNN are not
// compiled for it, so it does not see that their threads wait for each other.
extern "C" const char* __tsan_default_suppressions();

extern "C" const char* __tsan_default_suppressions() {
  return "called_from_lib:libgomp.so\n"
         "called_from_lib:libdnnl.so\n"
         "race:libgomp.so\n"
         "race:libdnnl.so\n";
}

extern "C" const char* __tsan_default_options();

extern "C" const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1";
}
