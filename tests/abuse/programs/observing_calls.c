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
    char attributes[128] = {1, 0, 0, 0, 112};
    TRY(syscall(298, attributes, 1, -1, -1, 0));       /* perf_event_open of process 1 */
    attributes[0] = 1;
    TRY(syscall(298, attributes, -1, 0, -1, 0));       /* of a whole core */
    TRY(syscall(323, 1));                              /* userfaultfd, also for kernel faults */
    TRY(syscall(323, 0));
    TRY(syscall(300, 0, 0));                           /* fanotify_init */
    TRY(syscall(312, 1, getpid(), 0, 0, 0) > 0 ? 0 : -1); /* kcmp */
    TRY(syscall(103, 3, attributes, 128));             /* syslog: the kernel's messages */
    return 7;
}
