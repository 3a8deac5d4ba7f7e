"""A library that the Debian package manager installed, as a Bazel repository."""

def _pkg_config(rctx, *args):
    result = rctx.execute(["pkg-config"] + list(args))
    if result.return_code != 0:
        fail("\n".join([
            "Library %s is not usable: pkg-config %s says:" % (rctx.name, " ".join(args)),
            result.stderr.strip(),
            "Run ./bazelw once, or install the Debian package %s." % rctx.attr.debian_package,
        ]))
    return result.stdout.strip()

def _system_library_impl(rctx):
    if not rctx.which("pkg-config"):
        fail("pkg-config is missing: run ./bazelw once, or install the Debian package pkg-config.")
    for module in rctx.attr.pkg_config:
        found = _pkg_config(rctx, "--modversion", module)
        if found != rctx.attr.version and not found.startswith(rctx.attr.version + "."):
            fail("Library %s is pinned to %s, but %s is installed (package %s)." % (
                rctx.name,
                rctx.attr.version,
                found,
                rctx.attr.debian_package,
            ))

    include_dir = "/usr/include"
    if rctx.attr.own_include_dir:
        include_dir = _pkg_config(rctx, "--variable=includedir", rctx.attr.pkg_config[0])
    header = include_dir + "/" + rctx.attr.header
    if not rctx.path(header).exists:
        fail("%s is missing: install the Debian package %s." % (header, rctx.attr.debian_package))

    linkopts = rctx.attr.linkopts
    defines = rctx.attr.defines
    if not linkopts:
        linkopts = [o for o in _pkg_config(rctx, "--libs", *rctx.attr.pkg_config).split(" ") if o]
    if not defines:
        cflags = _pkg_config(rctx, "--cflags-only-other", *rctx.attr.pkg_config)
        defines = [o[2:] for o in cflags.split(" ") if o.startswith("-D")]

    # Headers in /usr/include, where the compiler looks anyway, need neither a
    # link nor an include path.
    hdrs, includes = "[]", []
    if rctx.attr.own_include_dir:
        rctx.symlink(include_dir, "include")
        hdrs, includes = "glob([\"include/**/*.h\"])", ["include"]
    rctx.file("BUILD", """package(default_visibility = ["@//third_party:__subpackages__"])

cc_library(
    name = "{name}",
    hdrs = {hdrs},
    defines = {defines},
    includes = {includes},
    linkopts = {linkopts},
)
""".format(
        name = rctx.name,
        defines = repr(defines),
        hdrs = hdrs,
        includes = repr(includes),
        linkopts = repr(linkopts),
    ))

system_library = repository_rule(
    implementation = _system_library_impl,
    doc = "Checks that an installed library has the pinned version; makes @NAME//:NAME of it.",
    attrs = {
        "debian_package": attr.string(mandatory = True, doc = "Who brings it; for messages."),
        "defines": attr.string_list(doc = "Instead of what pkg-config says."),
        "header": attr.string(mandatory = True, doc = "A header below the include directory."),
        "linkopts": attr.string_list(doc = "Instead of what pkg-config says."),
        "own_include_dir": attr.bool(doc = "Headers are where pkg-config says, not in /usr/include itself."),
        "pkg_config": attr.string_list(mandatory = True, doc = "pkg-config modules."),
        "version": attr.string(mandatory = True, doc = "Pinned version, or a prefix of it."),
    },
    local = True,
)
