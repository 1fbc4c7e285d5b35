/* Children that become siblings: whoever waits for its own child meets one it never made. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void) {
    for (int i = 0; i < 8; i++) {
        long pid = syscall(SYS_clone, CLONE_PARENT | (i % 2 ? SIGCHLD : 0), 0, 0, 0, 0);
        if (pid == 0) {
            if (i < 4) _exit(0);
            for (int s = 0; s < 60; s++) sleep(1);
            _exit(0);
        }
    }
    printf("left siblings behind\n");
    fflush(stdout);
    raise(SIGABRT);
    return 3;
}
