/* SPDX-License-Identifier: BSD-3-Clause
 *
 * hdf5: the HDF5 library, as far as Cairn uses it. Row 1.
 *
 * No HDF5 is safe to be called by two threads at once, and a program may use it itself. So the
 * library is not linked but loaded when it is first needed: the serial one, which MPI programs do
 * not have, so that its state is Cairn's alone; a program that has that one, too, gets a second
 * copy of it beside. Programs that never ask for HDF5 never load it. (docs/design/hdf5.md)
 */
#ifndef CAIRN_HDF5_H
#define CAIRN_HDF5_H

#define H5_USE_110_API /* headers of later versions offer it, too */
#include <hdf5.h>

#include "base/base.h"

/* The header's constants call the library before they give a number; ours is open by then. */
#undef H5OPEN
#define H5OPEN
#undef H5CHECK
#define H5CHECK

#define CRN_H5_FUNCTIONS(X)                                                                        \
    X(H5open)                                                                                      \
    X(H5free_memory)                                                                               \
    X(H5Aclose)                                                                                    \
    X(H5Acreate2)                                                                                  \
    X(H5Aget_name)                                                                                 \
    X(H5Aget_space)                                                                                \
    X(H5Aget_type)                                                                                 \
    X(H5Aopen)                                                                                     \
    X(H5Aopen_by_idx)                                                                              \
    X(H5Aexists)                                                                                   \
    X(H5Aread)                                                                                     \
    X(H5Awrite)                                                                                    \
    X(H5Dclose)                                                                                    \
    X(H5Dcreate2)                                                                                  \
    X(H5Dget_create_plist)                                                                         \
    X(H5Dget_num_chunks)                                                                           \
    X(H5Dget_offset)                                                                               \
    X(H5Dget_space)                                                                                \
    X(H5Dget_space_status)                                                                         \
    X(H5Dget_type)                                                                                 \
    X(H5Dread)                                                                                     \
    X(H5Dvlen_reclaim)                                                                             \
    X(H5Dwrite)                                                                                    \
    X(H5Eclear2)                                                                                   \
    X(H5Eset_auto2)                                                                                \
    X(H5Ewalk2)                                                                                    \
    X(H5FDregister)                                                                                \
    X(H5Fclose)                                                                                    \
    X(H5Fcreate)                                                                                   \
    X(H5Fget_name)                                                                                 \
    X(H5Fopen)                                                                                     \
    X(H5Gclose)                                                                                    \
    X(H5Gget_info)                                                                                 \
    X(H5Iget_file_id)                                                                              \
    X(H5Iget_type)                                                                                 \
    X(H5Lget_info)                                                                                 \
    X(H5Lget_name_by_idx)                                                                          \
    X(H5Lget_val)                                                                                  \
    X(H5Lunpack_elink_val)                                                                         \
    X(H5Oclose)                                                                                    \
    X(H5Oget_info2)                                                                                \
    X(H5Oopen)                                                                                     \
    X(H5Pclose)                                                                                    \
    X(H5Pcreate)                                                                                   \
    X(H5Pfill_value_defined)                                                                       \
    X(H5Pget_chunk)                                                                                \
    X(H5Pget_driver_info)                                                                          \
    X(H5Pget_external_count)                                                                       \
    X(H5Pget_fill_value)                                                                           \
    X(H5Pget_layout)                                                                               \
    X(H5Pget_virtual_count)                                                                        \
    X(H5Pget_virtual_dsetname)                                                                     \
    X(H5Pget_virtual_filename)                                                                     \
    X(H5Pset_alignment)                                                                            \
    X(H5Pset_alloc_time)                                                                           \
    X(H5Pset_create_intermediate_group)                                                            \
    X(H5Pset_driver)                                                                               \
    X(H5Pset_fill_time)                                                                            \
    X(H5Pset_layout)                                                                               \
    X(H5Pset_virtual)                                                                              \
    X(H5Rget_name)                                                                                 \
    X(H5Sclose)                                                                                    \
    X(H5Screate)                                                                                   \
    X(H5Screate_simple)                                                                            \
    X(H5Sget_simple_extent_dims)                                                                   \
    X(H5Sget_simple_extent_ndims)                                                                  \
    X(H5Sget_simple_extent_npoints)                                                                \
    X(H5Sselect_hyperslab)                                                                         \
    X(H5Tarray_create2)                                                                            \
    X(H5Tclose)                                                                                    \
    X(H5Tcopy)                                                                                     \
    X(H5Tcreate)                                                                                   \
    X(H5Tequal)                                                                                    \
    X(H5Tget_array_dims2)                                                                          \
    X(H5Tget_array_ndims)                                                                          \
    X(H5Tget_class)                                                                                \
    X(H5Tget_member_name)                                                                          \
    X(H5Tget_member_offset)                                                                        \
    X(H5Tget_member_type)                                                                          \
    X(H5Tget_native_type)                                                                          \
    X(H5Tget_nmembers)                                                                             \
    X(H5Tget_sign)                                                                                 \
    X(H5Tget_size)                                                                                 \
    X(H5Tget_strpad)                                                                               \
    X(H5Tget_super)                                                                                \
    X(H5Tinsert)                                                                                   \
    X(H5Tis_variable_str)                                                                          \
    X(H5Tpack)                                                                                     \
    X(H5Tset_cset)                                                                                 \
    X(H5Tset_size)

/* What the header's names of types and of classes of properties stand for. */
#define CRN_H5_NUMBERS(X)                                                                          \
    X(H5P_CLS_DATASET_CREATE_ID_g)                                                                 \
    X(H5P_CLS_FILE_ACCESS_ID_g)                                                                    \
    X(H5P_CLS_LINK_CREATE_ID_g)                                                                    \
    X(H5T_STD_REF_OBJ_g)                                                                           \
    X(H5T_C_S1_g)                                                                                  \
    X(H5T_NATIVE_INT8_g)                                                                           \
    X(H5T_NATIVE_INT16_g)                                                                          \
    X(H5T_NATIVE_INT32_g)                                                                          \
    X(H5T_NATIVE_INT64_g)                                                                          \
    X(H5T_NATIVE_UINT8_g)                                                                          \
    X(H5T_NATIVE_UINT16_g)                                                                         \
    X(H5T_NATIVE_UINT32_g)                                                                         \
    X(H5T_NATIVE_UINT64_g)                                                                         \
    X(H5T_NATIVE_FLOAT_g)                                                                          \
    X(H5T_NATIVE_DOUBLE_g)

#define CRN_H5_FUNCTION(name) __typeof__(name) *name;
#define CRN_H5_NUMBER(name)   hid_t name;
typedef struct crn_h5 {
    CRN_H5_FUNCTIONS(CRN_H5_FUNCTION)
    CRN_H5_NUMBERS(CRN_H5_NUMBER)
    hid_t sketch_driver;
} crn_h5;

/*
 * Load the library, once, and keep other threads out of it until crn_hdf5_unlock.
 * CAIRN_EUNSUPPORTED when there is none.
 */
cairn_status crn_hdf5_lock(const crn_h5 **ret);
void crn_hdf5_unlock(void);

/* The same table for functions that the library calls, which is while it is locked. */
const crn_h5 *crn_hdf5_held(void);

/* CAIRN_EIO with a sentence, to which what HDF5 says about it is added. To be called at once: HDF5
 * forgets why with the next call, even one that closes something. */
cairn_status crn_hdf5_fail(const crn_h5 *h5, const char *fmt, ...) CAIRN_PRINTF(2);

/* A type's text as HDF5's, to be closed, and back. CAIRN_EUNSUPPORTED. */
cairn_status crn_hdf5_type(const crn_h5 *h5, const char *text, hid_t *ret);
cairn_status crn_hdf5_type_text(const crn_h5 *h5, hid_t type, char **ret);

/* --- types of any kind ---------------------------------------------------------------------- */

typedef enum crn_form_kind {
    CRN_FORM_NUMBER,
    CRN_FORM_ENUM,      /* of numbers, its part */
    CRN_FORM_TEXT,      /* of nbytes at most */
    CRN_FORM_FREE_TEXT, /* a char pointer */
    CRN_FORM_STRUCTURE, /* of its parts */
    CRN_FORM_ARRAY,     /* count of its part */
    CRN_FORM_SEQUENCE,  /* a hvl_t of its part */
    CRN_FORM_BYTES,     /* without a meaning that HDF5 knows */
    CRN_FORM_REFERENCE, /* to an object */
} crn_form_kind;

typedef struct crn_hdf5_part {
    char *name; /* of a member; otherwise NULL */
    size_t off;
    struct crn_hdf5_form *form;
} crn_hdf5_part;

/* What elements consist of in memory, as read by the type that the form is of. */
typedef struct crn_hdf5_form {
    crn_form_kind kind;
    size_t nbytes;
    uint64_t count;
    char number[16]; /* of a NUMBER: its type's text, as "float64"; otherwise empty */
    bool spaces;     /* TEXT is filled up with spaces */
    crn_hdf5_part *part;
    size_t nparts;
} crn_hdf5_form;

/* CAIRN_EUNSUPPORTED for what cannot be compared. */
cairn_status crn_hdf5_form_of(const crn_h5 *h5, hid_t type, crn_hdf5_form **ret);
void crn_hdf5_form_free(crn_hdf5_form *f); /* NULL is allowed */

/* Can elements of the two be compared: are they the same but for the room that texts have? */
bool crn_hdf5_form_like(const crn_hdf5_form *a, const crn_hdf5_form *b);
bool crn_hdf5_form_is_variable(const crn_hdf5_form *f); /* has pointers, to be reclaimed */
const char *crn_hdf5_form_word(const crn_hdf5_form *f); /* for people */

/* --- files in memory ---------------------------------------------------------------------- */

/* What HDF5 wrote at a place; later pieces may lie over earlier ones. */
typedef struct crn_sketch_piece {
    uint64_t off;
    size_t nbytes;
    unsigned char *data;
} crn_sketch_piece;

/* A file without what is only reserved in it. */
typedef struct crn_sketch {
    CRN_VEC(crn_sketch_piece) piece; /* in the order in which they were written */
    uint64_t nbytes;                 /* length of the file */
} crn_sketch;

/* Let the file that is made next with these properties of access become *s, whatever its name. s
 * must stay where it is until the file is closed. */
cairn_status crn_sketch_begin(const crn_h5 *h5, hid_t access, crn_sketch *s);
void crn_sketch_done(crn_sketch *s);

extern const H5FD_class_t crn_sketch_driver;

/* --- files of others ---------------------------------------------------------------------- */

/* What a path in a file leads to. */
typedef enum crn_hdf5_kind {
    CRN_HDF5_DATASET,
    CRN_HDF5_FAR,     /* a dataset whose data lies in other files, or is not there: text says why */
    CRN_HDF5_GROUP,   /* before what is in it */
    CRN_HDF5_AGAIN,   /* a group that was met before; text is "" or the path where */
    CRN_HDF5_TYPE,    /* a type with a name */
    CRN_HDF5_LOST,    /* a link that leads nowhere in this file: text says to where */
    CRN_HDF5_OUTWARD, /* a link into another file, which was not followed: likewise */
} crn_hdf5_kind;

typedef struct crn_hdf5_entry {
    const char *name; /* its path without the first slash; "" is the first group */
    crn_hdf5_kind kind;
    hid_t id;    /* of a DATASET, to be closed by who gets it; of a GROUP or TYPE; otherwise 0 */
    bool within; /* a DATASET of this file, not of one that a link leads to */
    const char *text;
} crn_hdf5_entry;

/*
 * Call fn with everything below the first group of a file, in the order of names. Groups are
 * entered once, by the first hard link that leads there; CRN_HDF5_ALL: as often as links lead
 * there, but not from within themselves. Links into other files are not followed, nor are datasets
 * near (below) that are made of others far away, unless CRN_HDF5_FOLLOW says so. Ends with the
 * first status of fn that is not CAIRN_OK. Without CRN_HDF5_ALL also statuses of crn_hdf5_is_near.
 * CAIRN_EINVAL (a path of more than CRN_HDF5_NAME bytes), CAIRN_EUNSUPPORTED (groups too deep in
 * each other, more than CRN_HDF5_ENTRIES entries), CAIRN_EIO, CAIRN_ENOMEM.
 */
enum { CRN_HDF5_NAME = 255, CRN_HDF5_ENTRIES = 1 << 20 };
enum { CRN_HDF5_ALL = 1, CRN_HDF5_FOLLOW = 2 };
typedef cairn_status crn_hdf5_fn(void *arg, const crn_hdf5_entry *entry);
cairn_status crn_hdf5_visit(const crn_h5 *h5, hid_t file, unsigned flags, crn_hdf5_fn *fn,
                            void *arg);

/*
 * Is all data of a dataset, which was opened by its name in file, in this file and below its
 * directory, through however many others it is made of? With CRN_HDF5_FOLLOW, in files that are
 * there. CAIRN_ENOTFOUND when one of these is not there, CAIRN_EUNSUPPORTED when they are too many
 * or lead too far.
 */
cairn_status crn_hdf5_is_near(const crn_h5 *h5, hid_t file, const char *name, hid_t dataset,
                              unsigned flags, bool *ret);

/* Does an object, to which links may have led into another file, lie in this one? */
bool crn_hdf5_is_within(const crn_h5 *h5, hid_t file, hid_t object);

/* Open a file to read. CAIRN_ENOTFOUND, CAIRN_EIO. */
cairn_status crn_hdf5_open(const crn_h5 *h5, const char *path, hid_t *ret);

#endif
