/*
 * rows.h
 *		What the functions for SQL have in common.
 */
#ifndef GOVERNOR_ROWS_H
#define GOVERNOR_ROWS_H

#include "compat.h"

#include "datatype/timestamp.h"
#include "utils/tuplestore.h"

extern void governor_rows_need_library(void);
extern ReturnSetInfo *governor_rows_begin(FunctionCallInfo fcinfo, int columns);
extern TimestampTz governor_rows_timestamp(uint64 monotonic_us);
extern double governor_rows_ms(uint64 us);
extern int	governor_rows_pool(text *name);

#endif							/* GOVERNOR_ROWS_H */
