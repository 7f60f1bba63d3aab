/*
 * standing.h
 *		What a process is to the governor.
 */
#ifndef GOVERNOR_STANDING_H
#define GOVERNOR_STANDING_H

typedef enum GovernorStanding
{
	GOVERNOR_UNKNOWN,
	GOVERNOR_EXEMPT,			/* never takes a slot */
	GOVERNOR_GOVERNED,
	GOVERNOR_PRIVILEGED,		/* governed, with reserved slots */
} GovernorStanding;

extern GovernorStanding governor_find_standing(Oid session_user);
extern bool governor_standing_is_superuser(Oid session_user);
extern void governor_standing_name(Oid session_user, char *name);

#endif							/* GOVERNOR_STANDING_H */
