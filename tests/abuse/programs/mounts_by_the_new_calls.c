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
    TRY(syscall(430, "tmpfs", 0));                     /* fsopen */
    TRY(syscall(428, AT_FDCWD, "/", 1 | 0x8000));      /* open_tree with a clone */
    TRY(syscall(429, AT_FDCWD, "/", AT_FDCWD, "/box", 4)); /* move_mount */
    TRY(syscall(433, AT_FDCWD, "/", 0));               /* fspick */
    TRY(syscall(442, AT_FDCWD, "/", 0x8000, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32)); /* mount_setattr */
    TRY(syscall(165, "none", "/", 0, 32 | 4096, 0));   /* mount: remount, bind, writable */
    TRY(syscall(166, "/proc", 2));                     /* umount2 */
    return 7;
}
