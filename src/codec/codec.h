/* SPDX-License-Identifier: BSD-3-Clause
 *
 * codec: turns a block's bytes into fewer bytes and back. Row 1.
 *
 *   name      id  values          good for
 *   none       0  any             (the template for a new codec)
 *   lz4        1  any             speed
 *   zstd       2  any             size
 *   zfp        3  float, double   smooth fields, nothing lost, one dimension
 *   fpzip      4  float, double   the same; smaller and slower
 *   zfp-box    5  float, double   zfp in 1 to 4 dimensions, with loss or without
 *   fpzip-box  6  float, double   fpzip likewise
 *   shuffle    7  any             bytes of one significance side by side, then lz4 or zstd
 *   f32        8  double          values as float32
 *   f16        9  float, double   values as half precision
 *   foreign   10  any             a codec of a shared object (<cairn/codec_plugin.h>)
 *
 * The ids are on disk and never change; docs/format.md says what the bytes are. Whoever decodes
 * must know the id, the kind of values and the decoded length, which the block's table has.
 *
 * A result counts only if it is as good as was asked: what a codec of floating-point values made is
 * decoded again and compared before it is handed out. crn_codec_encode loses nothing;
 * crn_codec_store, further below, loses what a setting allows. "Store it as it is" is an ordinary
 * answer of encode: CAIRN_NOTHING.
 *
 * Nothing here keeps state or allocates, but for the processes of crn_codec_decode_apart: the
 * caller brings scratch memory, one per thread. Two libraries do allocate a little inside: zfp (a
 * few hundred bytes per call) and fpzip (about 10 KiB per call, and it cannot report that there was
 * none).
 *
 * To add a codec: 1. codec_<name>.c with a crn_codec_ops, after codec_none.c; 2. a line in
 * codec_table.c and in codec_missing.c; 3. its library in cmake/CairnParts.cmake, CMakeLists.txt
 * and tools/packages; 4. the table above, the one in docs/format.md, and its settings in
 * codec_setting.c. tests/unit/test_codec.c finds it by the table.
 */
#ifndef CAIRN_CODEC_H
#define CAIRN_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/* The kind of values in a block, as far as codecs care. */
typedef enum crn_elem { CRN_ELEM_BYTES, CRN_ELEM_F32, CRN_ELEM_F64, CRN_NELEMS } crn_elem;

size_t crn_elem_nbytes(crn_elem elem);

typedef struct crn_codec_ops crn_codec_ops;

/* The codec with this id or name, or NULL; and the index-th, NULL after the last. */
const crn_codec_ops *crn_codec_of_id(uint32_t id);
const crn_codec_ops *crn_codec_of_name(const char *name);
const crn_codec_ops *crn_codec_at(size_t index);

const char *crn_codec_name(const crn_codec_ops *codec);
uint32_t crn_codec_id(const crn_codec_ops *codec);

/* Can it be used? CAIRN_EUNSUPPORTED when it was left out of this build, or when its library cannot
 * be loaded, which happens here at the latest. */
cairn_status crn_codec_ready(const crn_codec_ops *codec);

/* Does it take values of this kind? Others are stored as they are. */
bool crn_codec_accepts(const crn_codec_ops *codec, crn_elem elem);

/*
 * Room that encode needs in dst for nbytes (it uses more than it returns), and the scratch memory,
 * aligned to CRN_CODEC_ALIGN bytes, that encode and decode need. It may be 0.
 */
enum { CRN_CODEC_ALIGN = 64 };
size_t crn_codec_bound(const crn_codec_ops *codec, size_t nbytes);
size_t crn_codec_encode_scratch(const crn_codec_ops *codec, size_t nbytes);
size_t crn_codec_decode_scratch(const crn_codec_ops *codec);

/*
 * Encode nbytes from src into dst, which has room for crn_codec_bound bytes; *ret_n is at most
 * nbytes. CAIRN_EUNSUPPORTED: as crn_codec_ready. CAIRN_NOTHING: store src as it is, because the
 * result would be larger, or the values are of a kind or size that the codec cannot take.
 * CAIRN_ENOMEM, CAIRN_EINTERNAL: the library failed.
 */
cairn_status crn_codec_encode(const crn_codec_ops *codec, crn_elem elem, const void *src,
                              size_t nbytes, void *dst, void *scratch, size_t *ret_n);

/*
 * Decode n bytes from src into exactly nbytes at dst. Safe on any damage: CAIRN_ECORRUPT when these
 * are not the bytes that encode made of nbytes of such values. dst may be partly written then.
 */
cairn_status crn_codec_decode(const crn_codec_ops *codec, crn_elem elem, const void *src, size_t n,
                              void *dst, size_t nbytes, void *scratch);

/*
 * The same, and safe on any input, also such as a forger has made. Codecs whose decoders believe
 * their input (zfp, fpzip) decode in a process of their own that can do nothing else; if that
 * crashes or does not end, these bytes are damaged, and the next ones go to another process. Any
 * thread may call it. CAIRN_EIO, CAIRN_EUNSUPPORTED when there can be no such process.
 */
cairn_status crn_codec_decode_apart(const crn_codec_ops *codec, crn_elem elem, const void *src,
                                    size_t n, void *dst, size_t nbytes, void *scratch);

/* --- settings ------------------------------------------------------------------------------- */

/*
 * The largest error that may be made: |x - y| <= max(absolute, relative * max(|x|, |y|)) for each
 * value x that the program had and y that a reader gets, as <cairn/compare.h> has it. Both 0: none
 * is stated.
 */
typedef struct crn_loss {
    double absolute, relative;
} crn_loss;

/* Does a promise of a imply one of b? */
bool crn_loss_implies(const crn_loss *a, const crn_loss *b);

typedef enum crn_family {
    CRN_FAMILY_NONE,
    CRN_FAMILY_LZ4,
    CRN_FAMILY_ZSTD,
    CRN_FAMILY_ZFP,
    CRN_FAMILY_FPZIP,
    CRN_FAMILY_ROUND,
    CRN_FAMILY_F32,
    CRN_FAMILY_F16,
    CRN_FAMILY_AUTO,
    CRN_FAMILY_FOREIGN,
    CRN_NFAMILIES
} crn_family;

typedef enum crn_mode {
    CRN_MODE_EXACT,     /* nothing is lost */
    CRN_MODE_ACCURACY,  /* zfp: value is the largest error */
    CRN_MODE_PRECISION, /* zfp, fpzip: value is a number of bits */
    CRN_MODE_RATE,      /* zfp: bits of a value */
    CRN_MODE_BITS,      /* round: bits of the mantissa that are kept */
    CRN_MODE_NARROW,    /* f32, f16 */
    CRN_MODE_BY_LOSS    /* as few bytes as the stated loss allows */
} crn_mode;

/* A codec of a shared object, with its options. Once found it stays. */
typedef struct crn_foreign crn_foreign;

/* How blocks of a variable are stored. */
typedef struct crn_codec_setting {
    crn_family family;
    crn_mode mode;
    double value;  /* of the mode */
    int level;     /* of zstd */
    bool shuffle;  /* lz4, zstd: bytes of one significance side by side */
    bool zeros;    /* -0 comes back as -0 */
    bool flat;     /* all arrays are of one dimension */
    bool space;    /* auto: few bytes are wanted, not little time */
    crn_loss loss; /* that is checked: what was stated, or what the mode itself promises */
    bool bounded;  /* loss says something; else only that what is finite stays finite is checked */
    const crn_foreign *foreign;
} crn_codec_setting;

/*
 * From words: "zfp:accuracy=1e-8", "zfp:precision=40", "zfp:rate=16", "zfp" or "zfp:reversible",
 * "fpzip:precision=40", "fpzip", "round:bits=12", "f32", "f16", "zstd:level=5", "zstd:5", "lz4",
 * "/path/file.so:options",
 * with ",shuffle" and ",zeros" behind; "auto"; "none". loss is "abs 1e-6", "rel 1e-4" or both, ""
 * for none; with it "zfp", "fpzip", "round" and "auto" store as few bytes as it allows.
 * CAIRN_EINVAL says what is wrong; CAIRN_EUNSUPPORTED as crn_codec_ready.
 */
cairn_status crn_codec_parse(const char *text, const char *loss, crn_codec_setting *ret);

/* The setting that a configuration has for a variable. The same as crn_codec_parse, and names the
 * variable in the sentence. */
cairn_status crn_codec_configured(const crn_config *cfg, const char *name, crn_codec_setting *ret);

/* Are the settings of all variables good that a configuration names? Loads what codec.plugins
 * lists. To be called when it is read. */
cairn_status crn_codec_check_configured(const crn_config *cfg);

/* Load the shared objects of a list, with blanks or colons between. */
cairn_status crn_foreign_load(const char *list);

/* The words for a setting, and for a loss, in buf of CRN_CODEC_TEXT bytes. */
enum { CRN_CODEC_TEXT = 96 };
char *crn_codec_print(const crn_codec_setting *s, char *buf);
char *crn_loss_print(const crn_loss *loss, char *buf);

/* A loss in words; "" is none. CAIRN_EINVAL. */
cairn_status crn_loss_parse(const char *text, crn_loss *ret);

/* May it lose anything? The same, losing nothing: for copies of what has lost something. */
bool crn_codec_is_lossy(const crn_codec_setting *s);
crn_codec_setting crn_codec_without_loss(const crn_codec_setting *s);

/* Values [first, first + n) of an array, the last index fastest; n is the block's. */
enum { CRN_CODEC_DIMS = 4 };
typedef struct crn_codec_shape {
    uint32_t ndims; /* 0: one dimension */
    uint64_t extent[CRN_CODEC_DIMS];
    uint64_t first;
} crn_codec_shape;

/* A shape of any number of dimensions, of which codecs see at most CRN_CODEC_DIMS. */
crn_codec_shape crn_codec_shape_of(uint32_t ndims, const uint64_t *extent);

/* The size of blocks, a power of two, with which arrays of this shape come close to the rate of the
 * whole array; 0: it does not matter. */
uint32_t crn_codec_block(const crn_codec_setting *s, crn_elem elem, const crn_codec_shape *shape);

typedef struct crn_codec_values {
    crn_elem elem;
    const void *at;
    size_t nbytes;
    crn_codec_shape shape;
} crn_codec_values;

/* Why a block is stored otherwise than the setting says. */
typedef enum crn_fallback {
    CRN_FALLBACK_NONE,
    CRN_FALLBACK_STRICTER, /* a stricter setting of the codec kept the loss */
    CRN_FALLBACK_BOUND,    /* none did: without loss, or as it is */
    CRN_FALLBACK_SPECIAL,  /* too many values that are not finite or out of range: the same */
    CRN_FALLBACK_SIZE,     /* the codec made it no smaller: the same */
    CRN_NFALLBACKS
} crn_fallback;

const char *crn_fallback_name(crn_fallback f);

typedef struct crn_codec_result {
    uint32_t codec;    /* id; 0: the bytes as they are */
    size_t n;          /* bytes at dst; with codec 0 none, and the block's own are to be stored */
    const void *reads; /* what a reader gets: nbytes at the caller's own values or in scratch */
    bool exact;        /* these are the program's */
    double error;      /* the largest |x - y| */
    size_t naside;     /* values that are kept beside the others, exactly */
    crn_fallback fallback;
} crn_codec_result;

/* What became of the blocks of a variable. */
typedef struct crn_codec_counts {
    uint64_t nblocks, fallback[CRN_NFALLBACKS]; /* fallback[CRN_FALLBACK_NONE]: as was asked */
    uint64_t naside;                            /* values */
    uint64_t nbytes, stored;                    /* in memory, and as they are stored */
    uint64_t took_ns;                           /* to encode and check them */
    double error;                               /* the largest */
} crn_codec_counts;

/* Add what became of a block of nbytes; add what others have counted. */
void crn_codec_count(crn_codec_counts *c, const crn_codec_result *r, size_t nbytes);
void crn_codec_add_counts(crn_codec_counts *c, const crn_codec_counts *other);

/*
 * Store values as a setting says: encode, decode, and check each value before it counts. What does
 * not keep its loss goes to a stricter setting, then to a codec without loss, then is left as it
 * is. Values that are not finite, or beyond what the codec can hold, are kept aside exactly and do
 * not touch others. dst has room for crn_codec_store_bound bytes, scratch for
 * crn_codec_store_scratch. CAIRN_ENOMEM, CAIRN_EINTERNAL, CAIRN_EUNSUPPORTED.
 */
size_t crn_codec_store_bound(size_t nbytes);
size_t crn_codec_store_scratch(const crn_codec_setting *s, size_t nbytes);
cairn_status crn_codec_store(const crn_codec_setting *s, const crn_codec_values *values, void *dst,
                             void *scratch, crn_codec_result *ret);

/* --- choosing by measurement ----------------------------------------------------------------- */

enum { CRN_CHOICES = 6 };

/* A way to store a variable without loss, and what was measured of it; rate 0: nothing yet. */
typedef struct crn_way {
    crn_codec_setting setting;
    double encode; /* seconds of a byte, with its check */
    double rate;   /* bytes stored of a byte */
} crn_way;

/* What is known of a variable whose codec is 'auto'. */
typedef struct crn_choice {
    crn_way way[CRN_CHOICES]; /* the first: as it is */
    size_t n, now;
    uint64_t nmarks;
    double device; /* seconds of a stored byte, until it is as safe as was asked for */
    double copy;   /* of a byte, that the program was held for */
    bool space;
} crn_choice;

/* Those ways that this build has, for values of a kind; asked is the setting 'auto'. */
void crn_choice_init(crn_choice *c, crn_elem elem, const crn_codec_setting *asked);

/* Which ways to try on some of the blocks of the next mark. Returns how many. */
size_t crn_choice_trials(const crn_choice *c, size_t trial[CRN_CHOICES]);

/* What a mark measured: of a way; of storage, with the time for encoding taken away; of copying. */
void crn_choice_saw(crn_choice *c, size_t way, uint64_t nbytes, uint64_t stored, double seconds);
void crn_choice_saw_device(crn_choice *c, double seconds, uint64_t stored);
void crn_choice_saw_copy(crn_choice *c, double seconds, uint64_t nbytes);

/* After a mark: is another way better? Then it is c->now. */
bool crn_choice_decide(crn_choice *c);

/*
 * Is |x - y| within loss for each of n values? Values with equal bits are; others that are not
 * finite are not. *ret_error is the largest difference of finite values. Without loss (NULL) finite
 * values need only be finite.
 */
bool crn_loss_holds(crn_elem elem, const void *x, const void *y, size_t n, const crn_loss *loss,
                    double *ret_error);

#endif
