/* A process that never stays: it forks and leaves, so that whoever kills by number comes too late. */
#include <time.h>
#include <unistd.h>
int main(void) {
    time_t until = time(0) + 60;
    setsid();
    for (;;) {
        if (fork()) _exit(0);
        if (time(0) > until) return 0;
    }
}
