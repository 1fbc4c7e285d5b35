"""Entries of the table whose programs an interpreter reads: Perl, Ruby, PHP, Lua, R, Racket.

Choices, with their reasons:

* PHP writes its errors to stderr, so that stdout is the program's alone. /etc/php names the modules
  that its packages brought (readline, mbstring). Text before `<?php` is output, as in PHP.
* R is `Rscript`: packages in R's own libraries are found; none are downloaded.
* Racket's expander takes longer than most programs run, so a module and its requires are expanded
  once (`raco make`'s compilation manager) and kept as any compilation is.
"""

from __future__ import annotations

from assay.sandbox.languages import plans
from assay.sandbox.languages.language import MANAGED, Compile, Language, Tool, named

SCRIPTS = (
    Language(
        name="perl",
        aliases=("pl",),
        tools=(Tool("perl", "perl"),),
        main=named("main.pl"),
        run=("{perl}", "{main}", "{arguments}"),
        version=("{perl}", "-e", 'printf "perl %vd\n", $^V'),
        self_test="my ($a, $b) = split ' ', <STDIN>;\nprint $a + $b, \"\\n\";\n",
    ),
    Language(
        name="ruby",
        aliases=("rb",),
        tools=(Tool("ruby", "ruby"),),
        main=named("main.rb"),
        run=("{ruby}", "{main}", "{arguments}"),
        version=("{ruby}", "--version"),
        self_test="puts gets.split.sum(&:to_i)\n",
    ),
    Language(
        name="php",
        tools=(Tool("php", "php-cli"),),
        main=named("main.php"),
        run=(
            "{php}", "-d", "display_errors=stderr", "-d", "log_errors=0", "-d", "html_errors=0",
            "{main}", "{arguments}",
        ),
        version=("{php}", "--version"),
        read_only=(("/etc", "php*"),),
        self_test="<?php\necho array_sum(explode(' ', trim(fgets(STDIN)))), \"\\n\";\n",
    ),
    Language(
        name="lua",
        tools=(Tool("lua", "lua5.4"),),
        main=named("main.lua"),
        run=("{lua}", "{main}", "{arguments}"),
        version=("{lua}", "-v"),
        self_test='local a, b = io.read("n", "n")\nprint(a + b)\n',
    ),
    Language(
        name="r",
        aliases=("rscript",),
        tools=(Tool("Rscript", "r-base-core"),),
        main=named("main.R"),
        run=("{Rscript}", "{main}", "{arguments}"),
        version=("{Rscript}", "--version"),
        read_only=(("/etc", "R"),),
        self_test='cat(sum(scan(file("stdin"), quiet = TRUE)), "\\n")\n',
    ),
    Language(
        name="racket",
        aliases=("rkt",),
        tools=(Tool("racket", "racket"),),
        main=named("main.rkt"),
        compile=Compile(
            argv=("/bin/sh", "-c", plans.RACKET_SCRIPT, "sh", "{product}", "{racket}", "{main}"),
            tree=True,
        ),
        run=("{racket}", "{main}", "{arguments}"),
        version=("{racket}", "--version"),
        environment={"PLT_COMPILED_FILE_CHECK": "exists"},
        read_only=(("/etc", "racket"),),
        limits=MANAGED,
        self_test="#lang racket\n(displayln (+ (read) (read)))\n",
    ),
)  # fmt: skip
