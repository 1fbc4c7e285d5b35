/* Makes its parent its tracer and stops: a parent that waits without WUNTRACED in mind hangs. */
#include <signal.h>
#include <sys/ptrace.h>
#include <unistd.h>
int main(void) {
    ptrace(PTRACE_TRACEME, 0, 0, 0);
    raise(SIGSTOP);
    raise(SIGTSTP);
    for (int s = 0; s < 60; s++) sleep(1);
    return 0;
}
