/*
 * hint.h
 *		Hint comments in front of a statement.
 */
#ifndef GOVERNOR_HINT_H
#define GOVERNOR_HINT_H

#include "postgres.h"

extern bool governor_hint_is_there(const char *text, int location, const char *hint);

#endif							/* GOVERNOR_HINT_H */
