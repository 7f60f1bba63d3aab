# From every released version: what it has made works with this library, ALTER EXTENSION UPDATE makes of it what
# CREATE EXTENSION makes, and views of users stay.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('update', "pg_governor.transaction_limit = 2\n");
my $version = $node->safe_psql('postgres', 'SELECT default_version FROM pg_available_extensions WHERE name = \'pg_governor\'');

# All that a database has of the extension, but for the order of columns.
sub made
{
	my ($database) = @_;
	return $node->safe_psql($database, <<'EOC');
SELECT p.oid::regprocedure, pg_get_function_result(p.oid), proargnames, proallargtypes, prosrc,
	(SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(proacl) a) FROM pg_proc p
	JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass AND deptype = 'e'
	JOIN pg_extension e ON e.oid = d.refobjid AND extname = 'pg_governor' ORDER BY p.oid::regprocedure::text;
SELECT c.relname, (SELECT string_agg(a::text, ',' ORDER BY a::text) FROM unnest(relacl) a), string_agg(attname || ' ' || format_type(atttypid, NULL), ',' ORDER BY attname) FROM pg_class c
	JOIN pg_depend d ON d.objid = c.oid AND d.classid = 'pg_class'::regclass AND deptype = 'e'
	JOIN pg_extension e ON e.oid = d.refobjid AND extname = 'pg_governor'
	JOIN pg_attribute a ON attrelid = c.oid AND attnum > 0 AND attname <> 'admits_demoted' GROUP BY c.oid, 1, 2 ORDER BY 1;
EOC
}

my $expected = made('postgres');
like($expected, qr/pg_governor_status/, 'what CREATE EXTENSION makes');
my $count = $node->safe_psql('postgres', "SELECT count(*) FROM pg_extension_update_paths('pg_governor')
	WHERE target = '$version' AND path IS NOT NULL");
my @released = split /\n/, $node->safe_psql('postgres', "SELECT version FROM pg_available_extension_versions
	WHERE name = 'pg_governor' AND version <> '$version' ORDER BY version");
is(join(',', @released), '0.1.0,0.2.0,0.3.0', 'the released versions');
is($count, scalar @released, 'each has a way to this one');
for my $old (@released)
{
	my $database = 'from_' . $old =~ s/\D/_/gr;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, <<"EOC");
CREATE EXTENSION pg_governor VERSION '$old';
CREATE VIEW mine AS SELECT pool, class, taken, queued FROM pg_governor_pools WHERE class = 'transaction';
CREATE VIEW all_mine AS SELECT * FROM pg_governor_sessions;
EOC
	my $holder = session($node);
	$holder->ask('BEGIN');
	is($node->safe_psql($database, 'TABLE mine'), 'default|transaction|1|0', "$old: its objects work with the library of $version");
	is($node->safe_psql($database, "SELECT state FROM all_mine WHERE pid = $holder->{pid}"), 'running', "$old: all its views do");
	$node->safe_psql($database, 'SELECT pg_governor_reset()');
	$node->safe_psql($database, 'ALTER EXTENSION pg_governor UPDATE');
	is(made($database), $expected, "$old: the update makes what CREATE EXTENSION makes");
	is($node->safe_psql($database, 'TABLE mine'), 'default|transaction|1|0', "$old: a view of a user stays");
	is($node->safe_psql($database, "SELECT state FROM all_mine WHERE pid = $holder->{pid}"), 'running', "$old: one of all columns, too");
	is($node->safe_psql($database, "SELECT taken, slot_limit, effective_limit >= 2 FROM pg_governor_pools
		JOIN pg_governor_status USING (pool, class, slot_limit) WHERE class = 'transaction'"), '1|2|t', "$old: columns are what their names say");
	$holder->ask('COMMIT');
	$holder->leave;
}

# what uses the functions of 0.3 themselves stays, too
$node->safe_psql('postgres', <<'EOC');
CREATE DATABASE functions;
EOC
$node->safe_psql('functions', <<'EOC');
CREATE EXTENSION pg_governor VERSION '0.3.0';
CREATE VIEW mine AS SELECT pool, class, capacity FROM pg_governor_pools() WHERE class = 'transaction';
ALTER EXTENSION pg_governor UPDATE;
EOC
is($node->safe_psql('functions', 'SELECT pool FROM mine'), 'default', 'a view of the functions of 0.3 stays');
nothing_left($node, 'update');
$node->stop;
done_testing();
