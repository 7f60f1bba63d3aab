/*
 * doom.h
 *		A transaction that could not get its slot fails at its first statement.
 */
#ifndef GOVERNOR_DOOM_H
#define GOVERNOR_DOOM_H

#include "compat.h"

extern void governor_doom_set(MemoryContext callers);
extern void governor_doom_remember(void);
extern void governor_doom_check(void);
extern void governor_doom_forget(void);

#endif							/* GOVERNOR_DOOM_H */
