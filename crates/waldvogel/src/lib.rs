//! Binary search on prefix lengths (Waldvogel et al., "Scalable High Speed IP Routing Lookups", SIGCOMM 1997).
