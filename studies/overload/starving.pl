# A pooler as none must be: it logs every client in and passes on what the first ones send. The others, its surplus, never
# get an answer.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use IO::Socket::UNIX;

my ($port, $directory, $server_port, $served) = @ARGV;
$SIG{'CHLD'} = 'IGNORE';
my $door = IO::Socket::INET->new(
    LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 1024, ReuseAddr => 1)
    or die "could not listen on port $port: $!\n";
$| = 1;
print "the door is open\n";
my $number = 0;
while (1) {
    my $client = $door->accept() or next;
    $number++;
    next if fork();
    relay($client, $number <= $served);
    exit 0;
}

sub relay {
    my ($client, $is_served) = @_;
    my $server = IO::Socket::UNIX->new(Peer => "$directory/.s.PGSQL.$server_port")
        or die "could not connect to $directory: $!\n";
    my $both = IO::Select->new($client, $server);
    my $is_logged_in = 0;
    while (1) {
        for my $from ($both->can_read()) {
            sysread($from, my $bytes, 65536) or return;
            if ($from == $server) {
                $is_logged_in = 1 if $bytes =~ /Z\0\0\0\x05I$/;
                syswrite($client, $bytes);
            } elsif ($is_served || !$is_logged_in) {
                syswrite($server, $bytes);
            }
        }
    }
}
