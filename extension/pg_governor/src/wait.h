/*
 * wait.h
 *		How this process waits in a queue, and every way in which that ends.
 */
#ifndef GOVERNOR_WAIT_H
#define GOVERNOR_WAIT_H

#include "state.h"

extern void governor_wait_start(void);
extern bool governor_wait_for_slot(int gate, int role, bool at_begin);

#endif							/* GOVERNOR_WAIT_H */
