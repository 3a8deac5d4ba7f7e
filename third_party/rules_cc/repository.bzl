"""Debian's rules_cc, made to load in Debian's Bazel."""

_ROOT = "/usr/share/bazel/rules/cc"

# rules_cc 0.0.4 loads `use_cpp_toolchain` from Bazel's own toolchain_utils.bzl;
# Bazel 4 has no such symbol. Both files are needed for their names alone.
_STUBS = {
    "cc_flags_supplier.bzl": "cc_flags_supplier",
    "compiler_flag.bzl": "compiler_flag",
}

def _link_children(rctx, directory, skip):
    for child in rctx.path(_ROOT + "/" + directory).readdir():
        if child.basename not in skip:
            rctx.symlink(child, (directory + "/" if directory else "") + child.basename)

def _debian_rules_cc_impl(rctx):
    if not rctx.path(_ROOT).exists:
        fail("%s is missing: run ./bazelw once, or install the Debian package bazel-rules-cc." % _ROOT)
    _link_children(rctx, "", ["cc", "WORKSPACE", "MODULE.bazel"])
    _link_children(rctx, "cc", ["private"])
    _link_children(rctx, "cc/private", ["rules_impl"])
    _link_children(rctx, "cc/private/rules_impl", _STUBS.keys())
    for file, symbol in _STUBS.items():
        rctx.file("cc/private/rules_impl/" + file, "%s = None\n" % symbol)

debian_rules_cc = repository_rule(
    implementation = _debian_rules_cc_impl,
    doc = "Links /usr/share/bazel/rules/cc, except two files that Bazel 4 cannot load.",
    local = True,
)
