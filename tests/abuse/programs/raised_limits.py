import resource

for name in sorted(dir(resource)):
    if name.startswith("RLIMIT_"):
        kind = getattr(resource, name)
        soft, hard = resource.getrlimit(kind)
        if hard == resource.RLIM_INFINITY:
            continue
        for wanted in (resource.RLIM_INFINITY, hard + 1):
            try:
                resource.setrlimit(kind, (soft, wanted))
                print("ESCAPED raised", name, hard, "to", wanted)
            except (ValueError, OSError):
                pass
try:
    resource.prlimit(1, resource.RLIMIT_NOFILE, (16, 16))
    print("ESCAPED lowered the limits of process 1")
except (OSError, ValueError) as error:
    print(error)
