#pragma once
#include <openssl/bio.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>
#include <openssl/srtp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/time.h>

// Inline functions for OpenSSL's function-like macros, which Swift does not import.

static inline EVP_PKEY *ssl_make_p256_key(void) { return EVP_EC_gen("P-256"); }

static inline int ssl_ctx_set_version(SSL_CTX *ctx, int version) {
    return SSL_CTX_set_min_proto_version(ctx, version) == 1 &&
           SSL_CTX_set_max_proto_version(ctx, version) == 1;
}

static inline int ssl_ctx_set_groups(SSL_CTX *ctx, const char *groups) {
    return SSL_CTX_set1_groups_list(ctx, groups) == 1;
}

static inline void ssl_ctx_disable_session_cache(SSL_CTX *ctx) {
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF);
}

static inline void ssl_ctx_limit_certificates(SSL_CTX *ctx, long bytes) {
    SSL_CTX_set_max_cert_list(ctx, bytes);
}

static inline int ssl_set_datagram_size(SSL *ssl, long bytes) {
    return SSL_set_mtu(ssl, bytes) != 0;
}

static inline int ssl_set_record_size(SSL *ssl, long bytes) {
    return SSL_set_max_send_fragment(ssl, bytes) == 1;
}

static inline long ssl_handle_timeout(SSL *ssl) { return DTLSv1_handle_timeout(ssl); }

static inline void ssl_set_owner(SSL *ssl, void *owner) { SSL_set_app_data(ssl, owner); }

static inline void *ssl_owner(const SSL *ssl) { return SSL_get_app_data(ssl); }

static inline void bio_set_retry_read(BIO *bio) { BIO_set_retry_read(bio); }

static inline void bio_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }

// Disables tickets, renegotiation and MTU queries, and prefers our cipher order.
static inline void ssl_ctx_set_datagram_options(SSL_CTX *ctx) {
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_QUERY_MTU);
}

// Allows moving write buffers, and disables tickets and renegotiation.
static inline void ssl_ctx_set_stream_options(SSL_CTX *ctx) {
    SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_num_tickets(ctx, 0);
    SSL_CTX_set_mode(ctx, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
}

// Starts an HMAC-SHA1. It is in C because its parameter list holds pointers to strings, which must
// not move.
static inline int hmac_sha1_start(EVP_MAC_CTX *mac, const unsigned char *key, size_t length) {
    char name[] = "SHA1";
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, name, 0),
        OSSL_PARAM_construct_end(),
    };
    return EVP_MAC_init(mac, key, length, parameters);
}

// Fills `output` by the PRF of TLS 1.2 (RFC 5246 section 5); the seed begins with the label. It is in
// C for the same reason as `hmac_sha1_start`.
static inline int tls12_derive(EVP_KDF *prf, const char *digest, const unsigned char *secret,
                               size_t secret_length, const unsigned char *seed,
                               size_t seed_length, unsigned char *output, size_t length) {
    OSSL_PARAM parameters[] = {
        OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, (char *)digest, 0),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SECRET, (void *)secret, secret_length),
        OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SEED, (void *)seed, seed_length),
        OSSL_PARAM_construct_end(),
    };
    EVP_KDF_CTX *context = EVP_KDF_CTX_new(prf);
    int done = context != NULL && EVP_KDF_derive(context, output, length, parameters) == 1;
    EVP_KDF_CTX_free(context);
    return done;
}
