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
    int targets[] = {1, getppid()};
    for (int i = 0; i < 2; i++) {
        TRY(ptrace(PTRACE_ATTACH, targets[i], 0, 0));
        TRY(ptrace(PTRACE_SEIZE, targets[i], 0, 0));
        int keeper = (int)syscall(434, targets[i], 0);
        if (keeper >= 0)
            for (int number = 0; number < 16; number++)
                if (syscall(438, keeper, number, 0) >= 0) printf("ESCAPED took descriptor %d of %d\n", number, targets[i]);
        TRY(syscall(440, keeper, "\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0", 1, 21, 0)); /* process_madvise */
        TRY(setpgid(targets[i], 0));
        TRY(sched_setscheduler(targets[i], SCHED_BATCH, &(struct sched_param){0}));
    }
    return 7;
}
