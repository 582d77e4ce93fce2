#pragma once
#include <openssl/types.h>

// OpenSSL's algorithms for DTLS handshakes, without the ones that none of them uses.

/// Returns a new library context for handshakes, or NULL if OpenSSL's default provider is missing.
///
/// OpenSSL 3.0 makes a list of all decoders and all kinds of keys for each certificate that it
/// receives: 86 µs for one with a key on P-256, 23 µs in this context, which has only the kinds of
/// keys that a WebRTC client may have. Everything else is the default provider's own.
///
/// To be called once: the context belongs to the process, and cannot be freed.
OSSL_LIB_CTX *dtls_make_algorithms(void);
