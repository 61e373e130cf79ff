/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The inside of a session's regions.
 *
 * Design. What a site does in one call is a list of accesses; equal lists are one, and have a
 * number. The log is a line of numbers: 0 and a value, or a list's number. A mark has the log up to
 * its place. On the way back calls are held against it.
 *
 * A mark is armed by cairn_due or cairn_trigger, begins at its place, and is over when all ranks
 * have decided, which they agree upon in the next cairn_due or cairn_reduce. Until the choice of
 * the place is settled, a decision without copies, a shadow, runs for every site.
 */
#ifndef CAIRN_REGION_SESSION_H
#define CAIRN_REGION_SESSION_H

#include <cairn/region.h>

#include "comm/comm.h"
#include "region/region_decide.h"
#include "region/region_guard.h"
#include "region/region_poison.h"

enum { REGION_VARS = 1024, REGION_WORDS = REGION_VARS / 64 };

typedef enum region_phase {
    REGION_OFF,     /* cairn_regions was not called */
    REGION_INIT,    /* on the way back: the initialisation phase is done again, */
    REGION_FORWARD, /* what lies before the forward point is skipped, */
    REGION_REPLAY,  /* and the rest up to the place */
    REGION_RUN
} region_phase;

/* A declaration that does not hold. */
typedef struct region_finding {
    uint32_t site;
    size_t var;
    unsigned kind;
    uint64_t index, count; /* the first element, and how many there were */
} region_finding;

/* How often each element of a variable was left as it was by the regions of a list. */
typedef struct region_suspect {
    uint32_t list;
    size_t var;
    crn_buf visits;
} region_suspect;

/* With region.check: what variables were before the region that runs. */
typedef struct region_check {
    bool on, runs;         /* runs: a region does, or did last, */
    uint32_t list;         /* this one */
    uint64_t salt;         /* of its poison */
    CRN_VEC(crn_buf) copy; /* of each variable */
    crn_guard guard;       /* of what the region does not mention */
    CRN_VEC(region_suspect) suspect;
    CRN_VEC(region_finding) found;
    size_t told; /* so many are in the run's log */
} region_check;

/* Why a mark keeps something. */
typedef enum region_reason {
    REGION_READ,   /* a region reads it before it is overwritten, */
    REGION_SCOPE,  /* a scope may do so, */
    REGION_LISTED, /* the program has said so: a list of data, always, */
    REGION_UNKNOWN /* nothing had happened to it at the end of the look-ahead */
} region_reason;

/* What is known of a variable beside what decisions need. */
typedef struct region_name {
    char *name;
    bool captured;       /* something of it is in the open mark, */
    bool whole;          /* and all of it, also of what nobody has asked for */
    uint64_t kept_bytes; /* of the open mark, */
    region_reason reason;
    uint32_t list; /* of that region or scope */
} region_name;

/* A variable that was modified before the mark that the program is on its way to. */
typedef struct region_modified {
    char *name;
    bool all;
} region_modified;

/* What a site does in a call. */
typedef struct region_list {
    uint32_t site;
    char *text;          /* "advance(R density, W flux[])" */
    cairn_access *given; /* as it was given, with boxes behind */
    crn_access *access;
    size_t n, nused; /* given; of access: those of variables that are not empty */
    uint32_t told;   /* its number in the log; UINT32_MAX: none yet */
    bool scope;      /* the beginning of one */
    bool whole;      /* all accesses are to all of their variables */
    uint64_t touched[REGION_WORDS], reads[REGION_WORDS];
} region_list;

/* A site, and what is known of it as a place. */
typedef struct region_site {
    char *name;
    const char *spelled;    /* the pointer that it was last given by */
    uint32_t next;          /* the site that followed it last */
    uint32_t last_list;     /* that was met */
    uint64_t count;         /* how often it was met, */
    uint64_t last, gap;     /* when last, and the longest time between */
    bool shadowed;          /* a shadow is under way, */
    uint64_t began;         /* since then, */
    uint64_t kept;          /* and would keep so many bytes so far */
    crn_decision shadow;    /* its state */
    uint64_t nsamples;      /* shadows that ended, */
    double sum, sum_square; /* and what they would have kept */
    uint64_t *mentioned;    /* of a scope: bits of variables that its regions have named; or NULL */
} region_site;

/* A scope that the program is in. */
typedef struct region_scope {
    uint32_t site;
    size_t log_at; /* where the log was when it began, */
    bool full;     /* and whether it was full */
} region_scope;

typedef struct regions {
    cairn *c;
    region_phase phase;
    uint64_t limit, log_max;
    double seconds;                 /* 0: by how long regions take, */
    uint64_t start_ns, start_count; /* since these, of the leg */
    char *place_name;               /* that the program wants, or NULL */

    crn_region_vars var; /* handle n is variable n - 1 */
    CRN_VEC(region_name) name;
    CRN_VEC(region_site) site;
    CRN_VEC(region_list) list;
    CRN_VEC(region_scope) scope;
    region_check check;

    uint64_t count; /* regions met */
    crn_buf log;
    bool has_init, marked, full;
    bool listed;       /* the program has a list of data */
    uint64_t nreduced; /* calls of cairn_reduce */
    crn_buf payload;   /* of the last forward point, */
    bool forwarded;    /* if there was one, */
    uint64_t base;     /* and the count there */

    bool gathers;                /* shadows run, */
    CRN_VEC(uint64_t) undecided; /* and have these bits, of each site; empty: to be copied again */
    uint64_t expires;            /* the count at which one of them is over, or less */
    bool armed, at_once, open, failed;
    unsigned nheld; /* how often the program was held for a mark that is not armed yet */
    bool overdue;   /* armed, and the place that the program names does not come */
    uint64_t armed_ns, armed_after_ns; /* when, and how long after the mark before */
    uint64_t mark_ns;                  /* when the last mark began, or the session */
    uint32_t place;                    /* site; UINT32_MAX: any */
    uint32_t place_told;               /* that the log names, + 1 */
    uint64_t place_count;
    uint32_t place_site; /* of the open or last mark */
    CRN_VEC(double)
    mean;         /* of each site, over all ranks, at the last choice; 1e300: no candidate */
    uint32_t met; /* the list that is being looked at, */
    region_reason met_reason; /* and why what is kept now is */
    crn_decision decision;
    crn_buf state; /* for the mark */

    CRN_VEC(char *) told; /* the texts of lists, by their numbers in the log */
    crn_buf texts;        /* for the mark */

    /* On the way back. */
    uint64_t version, mark_count;
    size_t at; /* in the log */
    char *place_text;
    CRN_VEC(region_modified) modified; /* variables that had been, at the place */
    bool unseen;    /* regions were skipped unnamed: what they modify is not known */
    crn_err broken; /* why no marks are taken any more; code 0: they are */
} regions;

/* The regions of a session, which this makes when there are none yet. */
cairn_status crn_regions_get(cairn *c, regions **ret);

/* A call of the program that names a site: what it does in a session with regions, between the
 * checks of its arguments and the record of its failure. 1: the body is to run. */
typedef int crn_region_call(regions *r, const char *site, const cairn_access *access, size_t n);
int crn_regions_call(cairn *c, const char *site, const cairn_access *access, size_t n,
                     crn_region_call *call);
int crn_regions_pass(regions *r, uint32_t list); /* go on to, or skip, what the list stands for */

/* What went wrong: no marks from now on. Returns rc. */
cairn_status crn_regions_break(regions *r, cairn_status rc);

/* --- lists ---------------------------------------------------------------------------------- */

/* The list that a call stands for. CAIRN_EINVAL, CAIRN_ENOMEM. */
cairn_status crn_regions_list(regions *r, const char *site, const cairn_access *access, size_t n,
                              uint32_t *ret);
void crn_regions_forget_lists(regions *r);

/* The same for the beginning of a scope. */
cairn_status crn_regions_scope_list(regions *r, const char *site, const cairn_access *access,
                                    size_t n, uint32_t *ret);

/* --- scopes --------------------------------------------------------------------------------- */

/* A region names variables: they are its scopes' regions' own. */
void crn_scopes_mention(regions *r, uint32_t list);

/* At a place that lies in scopes: keep what their undeclared work may touch. */
cairn_status crn_scopes_decide(const regions *r, crn_decision *d, crn_keep_fn *keep, void *arg);

/* On the way back: is the scope that the list begins over in the log, and so to be skipped? */
bool crn_scope_is_skipped(regions *r, uint32_t list);

/* --- checking declarations ------------------------------------------------------------------ */

cairn_status crn_check_before(regions *r, uint32_t list); /* a region is about to run */
void crn_check_after(regions *r);                         /* it has run; nothing when none has */
void crn_check_value(regions *r, const void *value, size_t nbytes); /* it leaves the last region */
void crn_check_drop(const regions *r, size_t var); /* what was modified of it is not needed */
void crn_check_tell(regions *r);                   /* as events of the run. Collective. */
void crn_check_done(region_check *k);

/* --- marks ---------------------------------------------------------------------------------- */

/* A region is about to run. Collective where a mark begins, which is so for all ranks. */
cairn_status crn_regions_before(regions *r, uint32_t list);

/* Shadows: a region is about to run; and the place that they speak for, UINT32_MAX: none, and
 * whether enough is known of all sites. The latter is collective. */
cairn_status crn_shadow_step(regions *r, uint32_t list);
void crn_shadows_forget(regions *r); /* those under way are not to count */
cairn_status crn_regions_choose(regions *r, uint32_t *ret_site, bool *ret_settled);

cairn_status crn_regions_arm(regions *r); /* a mark is wanted. Collective. */
bool crn_regions_poll(void *arg);         /* for cairn_due. Collective. */
bool crn_regions_hold(void *arg);         /* is a mark to be finished before the program leaves? */

/* To the log, and as an event of the run: what the mark keeps and why, its place, and others. The
 * ranks have all come here. */
void crn_regions_tell_mark(regions *r);

/* --- the log -------------------------------------------------------------------------------- */

cairn_status crn_regions_log_list(regions *r, uint32_t list);
cairn_status crn_regions_log_value(regions *r, const void *value, size_t nbytes);
cairn_status crn_regions_tell(regions *r, uint32_t list); /* let it have a number */
cairn_status crn_regions_tell_text(regions *r, const char *text, uint32_t *ret);
cairn_status crn_regions_log_number(regions *r, uint64_t number);
cairn_status crn_regions_capture_log(regions *r); /* into the open mark */

/* --- the way back --------------------------------------------------------------------------- */

cairn_status crn_regions_start(regions *r);      /* collective */
int crn_regions_skip(regions *r, uint32_t list); /* 1: it is to run */
uint64_t crn_regions_peek(regions *r);           /* the next number of the log; leaves it there */
cairn_status crn_regions_take_value(regions *r, void *value, size_t nbytes);
cairn_status crn_regions_take_payload(regions *r, void *payload, size_t nbytes);

#endif
