/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How fast the storage of a folder is: a file without a name, written, synced, and read again past
 * the page cache where that can be dropped.
 */
#include "cmd/cmd_codecs.h"

#include <fcntl.h>
#include <unistd.h>

enum { PIECE = 4 << 20, NPIECES = 16 };

static double speed_since(uint64_t start)
{
    return (double)PIECE * NPIECES / ((double)(crn_now_ns() - start) * 1e-9);
}

static bool write_all(int fd, const unsigned char *piece)
{
    for (int i = 0; i < NPIECES; i++)
        if (pwrite(fd, piece, PIECE, (off_t)i * PIECE) != PIECE)
            return false;
    return fdatasync(fd) == 0;
}

static bool read_all(int fd, unsigned char *piece)
{
    for (int i = 0; i < NPIECES; i++)
        if (pread(fd, piece, PIECE, (off_t)i * PIECE) != PIECE)
            return false;
    return true;
}

codecs_storage codecs_measure(const char *folder)
{
    codecs_storage s = {0};
    unsigned char *piece;
    const int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (fd < 0)
        return s;
    if (crn_alloc(&piece, PIECE) == CAIRN_OK) {
        for (size_t i = 0; i < PIECE; i += 8) {
            const uint64_t x = crn_hash_mix(1, i);
            memcpy(piece + i, &x, 8);
        }
        uint64_t start = crn_now_ns();
        s.write = write_all(fd, piece) ? speed_since(start) : 0;
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        start = crn_now_ns();
        s.read = s.write > 0 && read_all(fd, piece) ? speed_since(start) : 0;
        free(piece);
    }
    close(fd);
    return s;
}
