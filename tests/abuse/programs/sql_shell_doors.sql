.shell echo ESCAPED shell
.once |echo ESCAPED once
.output |cat
.excel
.log /tmp/assay_mark
.backup main /tmp/assay_mark.db
.read /etc/passwd
.cd /
SELECT 'ESCAPED ' || load_extension('/lib/x86_64-linux-gnu/libc.so.6');
SELECT 'ESCAPED ' || writefile('/tmp/assay_mark', 'x');
SELECT 'ESCAPED ' || edit('x', 'cat');
SELECT length(randomblob(1 << 30)), length(randomblob(1 << 30));
