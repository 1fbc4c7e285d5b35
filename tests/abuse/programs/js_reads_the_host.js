const fs = require("fs");
for (const path of ["/etc/shadow", "/proc/1/environ", "/root/.bashrc"]) {
  try { if (fs.readFileSync(path).length) console.log("ESC" + "APED read " + path); } catch (error) {}
}
if (Object.keys(process.env).some((name) => name.startsWith("SBX_"))) console.log("ESC" + "APED the environment");
try { process.kill(process.ppid, "SIGKILL"); } catch (error) {}
process.exitCode = 7;
