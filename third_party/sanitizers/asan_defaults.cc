// What LeakSanitizer must not report: what Open MPI, its plugins and the libraries that it brings never free, not even
// in MPI_Finalize. All of it is allocated once a process, or once a communicator, and none of it is ours.
extern "C" const char* __lsan_default_suppressions();

extern "C" const char* __lsan_default_suppressions() {
  return "leak:libmpi.so\n"
         "leak:libopen-rte.so\n"
         "leak:libopen-pal.so\n"
         "leak:/openmpi/\n"  // the plugins' folder
         "leak:libpmix.so\n"
         "leak:libhwloc.so\n"
         // Open MPI's printing into new strings, through the C library, which has no frame pointers: the stack ends
         // there. Nothing of ours calls it.
         "leak:vasprintf\n";
}

extern "C" const char* __asan_default_options();

// Tests read what programs print, in which a list of suppressions has no place.
extern "C" const char* __asan_default_options() { return "print_suppressions=0"; }

extern "C" int dlclose(void* library);

// In place of the C library's. Open MPI closes its plugins at the end, and what they leaked would then come from an
// unknown place, which no suppression matches.
extern "C" int dlclose(void* /*library*/) { return 0; }
