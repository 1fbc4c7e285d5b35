# attaches to others as a debugger does
# control: attached
# ends: security_violation
if os.fork() == 0:
    for pid in others():
        if call("ptrace", 0x4206, pid, 0, 0)[0] == 0:
            escaped("attached", pid)
    os._exit(0)
print("child", os.waitstatus_to_exitcode(os.wait()[1]), flush=True)
print("TRIED")
call("ptrace", 16, 1, 0, 0)
