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

// Nor what other libraries that are not compiled for it do: Open MPI takes locks of its TCP plugin in two orders.
extern "C" const char* __tsan_default_options() { return "ignore_noninstrumented_modules=1"; }
