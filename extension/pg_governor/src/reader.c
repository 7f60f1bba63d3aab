/*
 * reader.c
 *		Reads the words of a setting that is a list.
 */
#include "reader.h"

static bool read_items(GovernorReader *reader, void *list, GovernorItemReader read_item);

/*
 * The whole of a setting that is a list: items with commas between them.  "list" is the setting's own memory, which becomes
 * its "extra", or is freed.
 */
bool
governor_read_setting(GovernorReader reader, void *list, GovernorItemReader read_item, const char *hint, void **extra)
{
	if (!read_items(&reader, list, read_item))
	{
		governor_setting_free(list);
		GUC_check_errdetail("%s, at \"%s\".", reader.why, reader.at);
		GUC_check_errhint("%s", hint);
		return false;
	}
	*extra = list;
	return true;
}

static bool
read_items(GovernorReader *reader, void *list, GovernorItemReader read_item)
{
	governor_read_space(reader);
	for (bool first = true; *reader->at != '\0'; first = false)
	{
		if (!first && !governor_read_char(reader, ','))
			return governor_read_refuse(reader, reader->at, "Expected a comma");
		governor_read_space(reader);
		if (!read_item(reader, list))
			return false;
		governor_read_space(reader);
	}
	return true;
}

/* Keeps a string with the list. */
const char *
governor_read_keep(GovernorReader *reader, const char *text, Size length)
{
	char	   *kept = reader->store;

	Assert(length < reader->store_left);
	memmove(kept, text, length);
	kept[length] = '\0';
	reader->store += length + 1;
	reader->store_left -= length + 1;
	return kept;
}

/* Everything but white space and the punctuation of the lists. */
bool
governor_read_word(GovernorReader *reader, char *word, Size size)
{
	Size		length;

	governor_read_space(reader);
	length = strcspn(reader->at, " \t\r\n(),=");
	if (length == 0 || length >= size)
		return false;
	memcpy(word, reader->at, length);
	word[length] = '\0';
	reader->at += length;
	return true;
}

/* A word, or what is between double quotes.  As an identifier in SQL, a word may be taken in lower case. */
bool
governor_read_name(GovernorReader *reader, char *name, Size size, bool folded, const char *expected)
{
	const char *start;
	Size		length = 0;

	governor_read_space(reader);
	start = reader->at;
	if (*start != '"')
	{
		if (!governor_read_word(reader, name, size) || strchr(name, '"') != NULL)
			return governor_read_refuse(reader, start, expected);
		for (char *c = name; folded && *c != '\0'; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c += 'a' - 'A';
		return true;
	}
	for (reader->at++; *reader->at != '"' || *++reader->at == '"'; reader->at++)
	{
		if (*reader->at == '\0' || length + 1 >= size)
			return governor_read_refuse(reader, start, *reader->at == '\0' ?
										"A quoted name does not end" : "A name is too long");
		name[length++] = *reader->at;
	}
	name[length] = '\0';
	return length > 0 || governor_read_refuse(reader, start, expected);
}

bool
governor_read_char(GovernorReader *reader, char wanted)
{
	governor_read_space(reader);
	if (*reader->at != wanted)
		return false;
	reader->at++;
	return true;
}

bool
governor_read_choice(GovernorReader *reader, const struct config_enum_entry *choices, int *chosen)
{
	char		word[NAMEDATALEN];
	const char *start;

	governor_read_space(reader);
	start = reader->at;
	if (governor_read_word(reader, word, sizeof(word)))
		for (; choices->name != NULL; choices++)
			if (strcmp(word, choices->name) == 0)
			{
				*chosen = choices->val;
				return true;
			}
	return governor_read_refuse(reader, start, "There is no such choice");
}

bool
governor_read_refuse(GovernorReader *reader, const char *at, const char *why)
{
	reader->at = at;
	reader->why = why;
	return false;
}

void
governor_read_space(GovernorReader *reader)
{
	reader->at += strspn(reader->at, " \t\r\n");
}

int
governor_read_count(const char *text, char wanted)
{
	int			found = 0;

	for (; *text != '\0'; text++)
		found += *text == wanted;
	return found;
}
