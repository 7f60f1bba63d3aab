/*
 * standing.c
 *		What this process is to the governor: exempt, governed, or privileged.
 */
#include "compat.h"

#include "libpq/libpq-be.h"
#include "replication/walsender.h"
#include "utils/snapmgr.h"

#include "list.h"
#include "loopback.h"
#include "standing.h"

static const char *login_name(Oid session_user);
static bool is_listed(const GovernorRoleList *roles, Oid session_user);

GovernorStanding
governor_find_standing(Oid session_user)
{
	if (MyBackendType != B_BACKEND || MyProcPort == NULL || am_walsender || governor_loopback_by_unix() ||
		is_listed(governor_exempt_roles, session_user))
		return GOVERNOR_EXEMPT;
	return governor_standing_is_superuser(session_user) || is_listed(governor_reserved_roles, session_user) ?
		GOVERNOR_PRIVILEGED : GOVERNOR_GOVERNED;
}

/* Of the login role, which SET ROLE does not change.  No snapshot of the look into the catalogs stays. */
bool
governor_standing_is_superuser(Oid session_user)
{
	bool		found = superuser_arg(session_user);

	InvalidateCatalogSnapshot();
	return found;
}

/* Empty if the role is gone.  "name" has room for NAMEDATALEN bytes. */
void
governor_standing_name(Oid session_user, char *name)
{
	const char *found = login_name(session_user);

	strlcpy(name, found != NULL ? found : "", NAMEDATALEN);
}

static bool
is_listed(const GovernorRoleList *roles, Oid session_user)
{
	const char *name;

	if (roles == NULL || roles->count == 0)
		return false;
	name = login_name(session_user);
	for (int i = 0; name != NULL && i < roles->count; i++)
		if (strcmp(roles->names[i], name) == 0)
			return true;
	return false;
}

/*
 * The name of the role that has logged in is known without a look into the catalogs,
 * which would take a snapshot; another one is there after SET SESSION AUTHORIZATION.
 */
static const char *
login_name(Oid session_user)
{
	const char *name = MyProcPort->user_name;

	if (session_user != GetAuthenticatedUserId())
	{
		name = GetUserNameFromId(session_user, true);
		InvalidateCatalogSnapshot();
	}
	return name;
}
