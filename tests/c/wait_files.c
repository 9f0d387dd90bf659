/* A file that can be read ends a wait, and one that was emptied does not; a file that is none is not waited for. */
#define _GNU_SOURCE
#include "cython_core/links/wait_files.h"

#include "check.h"

#include <sys/eventfd.h>

int main(void) {
    uint64_t one = 1;
    int fd = eventfd(0, EFD_NONBLOCK);
    ps_file files[2] = {ps_file_of(-1), ps_file_of(fd)};
    CHECK(fd >= 0);
    CHECK(ps_files_wait(files, 2, 1) == 0);
    CHECK(write(fd, &one, sizeof one) == sizeof one);
    CHECK(ps_files_wait(files, 2, -1) == 1 && files[0].revents == 0 && files[1].revents != 0);
    ps_file_empty(fd);
    ps_file_empty(fd);
    CHECK(ps_files_wait(files, 2, 1) == 0);
    close(fd);
    return 0;
}
