//! The PostgreSQL protocol without sockets: frames, messages, start-up, authentication, conninfo.
