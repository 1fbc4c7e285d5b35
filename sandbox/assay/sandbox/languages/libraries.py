"""Where the libraries of a machine lie, for languages whose programs may use them.

All lie below /usr, which every box shows, read-only: programs may import what the operator installs
with Debian's packages or with `npm install -g`. Nothing is downloaded.
"""

from __future__ import annotations

from assay.sandbox.languages.language import Library

NODE_PATH = ":".join(
    ("/usr/local/lib/node_modules", "/usr/lib/node_modules", "/usr/share/nodejs", "/usr/lib/nodejs")
)
"""Where `require` looks last: the packages of npm install -g, then Debian's node-*."""

GO_PATH = "/usr/share/gocode"
"""Libraries of programs without a go.mod: Debian's golang-*-dev."""

GO_LIBRARIES = Library(
    "gocode", (f"{GO_PATH}/src/*/*/*",), "golang-github-stretchr-testify-dev", needed=False
)

JAVA_TUPLES = Library(
    "javatuples", ("/usr/share/java/javatuples.jar",), "libjavatuples-java", needed=False
)
JAVA_CLASS_PATH = f".:{JAVA_TUPLES.places[0]}{{jars}}"

JUNIT = Library(
    "junit",
    (
        "/usr/share/java/junit-platform-console-standalone.jar",
        "/usr/local/share/java/junit-platform-console-standalone*.jar",
    ),
    "junit5",
)

BABEL_PRESETS = tuple(
    Library(
        name.replace("-", "_"),
        tuple(f"{folder}/@babel/{name}" for folder in NODE_PATH.split(":")),
        "node-babel7",
    )
    for name in ("preset-env", "preset-typescript")
)
