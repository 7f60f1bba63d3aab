/*
 * problems.h
 *		Settings that change nothing, and what else an administrator has to know.
 */
#ifndef GOVERNOR_PROBLEMS_H
#define GOVERNOR_PROBLEMS_H

#include "compat.h"

#include "nodes/pg_list.h"

extern List *governor_problems_find(void);
extern void governor_problems_publish(void);

#endif							/* GOVERNOR_PROBLEMS_H */
