//! What the servers and the machine did, second by second.
