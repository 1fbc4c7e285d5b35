#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void got(const char *what, long result) {
    if (result >= 0) printf("ESCAPED %s = %ld\n", what, result);
    else printf("%s: %s\n", what, strerror(errno));
    fflush(stdout);
}
/* Each call in a child of its own, so that one that is fatal does not spare the others. */
#define TRY(call) do { \
    pid_t child = fork(); \
    if (child == 0) { errno = 0; got(#call, (long)(call)); _exit(0); } \
    int end = 0; \
    if (child < 0 || waitpid(child, &end, 0) < 0) return 9; \
    if (WIFSIGNALED(end)) printf("%s: signal %d\n", #call, WTERMSIG(end)); \
} while (0)
int main(void) {
    int flags[] = {CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNS, CLONE_NEWNET, CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80};
    for (int i = 0; i < 8; i++) {
        errno = 0;
        long child = flags[i] == 0x80 ? -1 : syscall(SYS_clone, flags[i] | 17, 0, 0, 0, 0);
        if (child == 0) _exit(0);
        got("a clone into a new namespace", child);
        errno = 0;
        got("unshare", unshare(flags[i]));
        errno = 0;
        got("unshare with a user namespace", unshare(flags[i] | CLONE_NEWUSER));
    }
    return 7;
}
