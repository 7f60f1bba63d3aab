/*
 * server.h
 *		What gate.c, slot.c and check.c need of a server, for programs without one.
 */
#ifndef GATES_SERVER_H
#define GATES_SERVER_H

#include "../../src/compat.h"

#include "../../src/state.h"

/* The server's own are not linked here. */
#undef printf
#undef fprintf
#undef vfprintf
#undef snprintf
#undef sprintf
#undef vsnprintf
#undef vsprintf
#undef qsort

/* Memory that forked processes share, filled with zeros. */
extern void *server_memory(Size size);

/* The governor's state, with so many pools and process slots. */
extern void server_start(int pools, int sessions);

/* What look.c needs beside; in procs.c. */
extern void server_procs_start(void);

/* A number below this one, of a sequence that each process has for itself. */
extern uint32 server_random(uint32 below);
extern void server_seed(uint32 seed);

#endif							/* GATES_SERVER_H */
