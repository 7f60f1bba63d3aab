# A limit that finds itself: it leaves more slots than help to be none, stays between the CPUs and the setting,
# and survives a monitor that is gone and a reload.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

# In sleep nothing is gained by another one, since all of them want the same row; and nobody is let in by another rule.
my $node = governed_node('find_limit', <<'EOC');
pg_governor.transaction_limit = 30
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
pg_governor.policy = fifo
pg_governor.find_limit = on
max_connections = 80
EOC
my $cpus = $node->safe_psql('postgres', 'SELECT cpus FROM pg_governor_health');
plan skip_all => 'it has to have fewer CPUs than slots' if 30 < 8 * $cpus;
$node->safe_psql('postgres', 'CREATE TABLE hot AS SELECT 0 AS v');
my $script = $node->basedir . '/hot.sql';
append_to_file($script, "BEGIN;\nUPDATE hot SET v = v + 1;\nSELECT pg_sleep(0.002);\nCOMMIT;\n");
my $load = IPC::Run::start([ 'pgbench', '-n', '-c', 40, '-T', 1800, '-f', $script, $node->connstr('postgres') ],
	'>', \my $out, '2>', \my $err);

sub found
{
	my ($condition) = @_;
	return $node->poll_query_until('postgres', "SELECT $condition FROM pg_governor_status WHERE pool = 'default' AND class = 'transaction'");
}

ok(found("found_limit <= 8 AND enforced = 'find_limit' AND slot_limit = 30"), 'slots that bring nothing are taken away');
my $least = 30;
my $most = 0;
for (1 .. 50)
{
	my $limit = $node->safe_psql('postgres', "SELECT effective_limit, pg_sleep(0.02) FROM pg_governor_status WHERE pool = 'default' AND class = 'transaction'");
	$limit =~ s/\|.*//;
	$least = $limit if $limit < $least;
	$most = $limit if $limit > $most;
}
cmp_ok($least, '>=', $cpus, 'there are never fewer than CPUs');
cmp_ok($most, '<', 30, 'nor all that the setting allows');

# another monitor, and a reload
my $kept = "SELECT found_limit <= 12 FROM pg_governor_status WHERE pool = 'default' AND class = 'transaction'";
my $monitor = $node->safe_psql('postgres', 'SELECT monitor_pid FROM pg_governor_health');
kill 'TERM', $monitor;
$node->poll_query_until('postgres', "SELECT monitor_pid NOT IN (0, $monitor) FROM pg_governor_health") or die;
wait_for_look($node);
is($node->safe_psql('postgres', $kept), 't',
	'another monitor goes on with what was found');
reload_all($node);
is($node->safe_psql('postgres', $kept), 't',
	'so it does after a reload');

# the setting is the bound
set_all($node, transaction_limit => 4);
ok(found('found_limit <= 4 AND effective_limit <= 4'), 'the setting is the bound');
set_all($node, find_limit => 'off', transaction_limit => 30);
ok(found("found_limit IS NULL AND effective_limit = 30 AND enforced = 'limit'"), 'without it the setting holds');
$load->kill_kill;
nothing_left($node, 'find_limit');
$node->stop;
done_testing();
