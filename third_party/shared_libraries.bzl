"""The shared libraries that a cc_library brings along, as files to install."""

def _shared_libraries_impl(ctx):
    files = []
    for linker_input in ctx.attr.dep[CcInfo].linking_context.linker_inputs.to_list():
        for library in linker_input.libraries:
            # The latter is a link in Bazel's folder of links.
            file = library.resolved_symlink_dynamic_library or library.dynamic_library
            if file:
                files.append(file)
    return [DefaultInfo(files = depset(files))]

shared_libraries = rule(
    implementation = _shared_libraries_impl,
    doc = "Those that stand in srcs of the library or of what it depends on; not those of the system.",
    attrs = {"dep": attr.label(mandatory = True, providers = [CcInfo])},
)
