/*
 * loopback.h
 *		Whether the client of this session is another session of the same server.
 */
#ifndef GOVERNOR_LOOPBACK_H
#define GOVERNOR_LOOPBACK_H

extern bool governor_loopback_by_unix(void);
extern bool governor_loopback_by_tcp(void);

#endif							/* GOVERNOR_LOOPBACK_H */
