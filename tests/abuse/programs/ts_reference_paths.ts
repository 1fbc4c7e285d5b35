/// <reference path="/etc/passwd" />
import shadow = require("/etc/shadow");
console.log("ESC" + "APED " + shadow);
