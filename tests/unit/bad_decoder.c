/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The program of src/codec/decoder with a codec that does what its first byte says.
 */
#include "codec/codec_ops.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

static bool try_all(crn_elem elem, const void *src, size_t n, void *dst, size_t nbytes, void *work)
{
    static volatile int zero;
    volatile unsigned char *nowhere = NULL;
    (void)elem, (void)n, (void)work;
    switch (*(const char *)src) {
    case 'c': /* copy, with memory of its own */
        free(memset(malloc(nbytes + (1 << 20)), 1, nbytes));
        memcpy(dst, src, nbytes);
        return true;
    case 's': /* signal 11 */
        *nowhere = 1;
        return true;
    case 'h': /* hang */
        while (!zero)
            ;
        return true;
    case 'w': /* wait for a request that never comes */
        return read(0, dst, 1) == 1;
    case 'o':
        return open("/dev/null", O_RDONLY) >= 0;
    case 'p':
        return socket(AF_UNIX, SOCK_STREAM, 0) >= 0;
    case 'f':
        return fork() >= 0;
    case 'k':
        return kill(getppid(), 0) == 0;
    case 'x': /* memory that could be executed */
        return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
               MAP_FAILED;
    case 'm': /* more memory than there may be */
        nowhere = malloc((size_t)4 << 30);
        *nowhere = 1;
        return true;
    default:
        return false;
    }
}

static const crn_codec_ops bad = {.name = "bad", .id = 1, .decode = try_all};

const crn_codec_ops *crn_codec_of_id(uint32_t id)
{
    return id == 1 ? &bad : NULL;
}
