// A provider (provider(7)) that passes on OpenSSL's default one, less what handshakes do not use.

#include "CDTLSAlgorithms.h"

#include <openssl/core_dispatch.h>
#include <openssl/crypto.h>
#include <openssl/provider.h>
#include <stdbool.h>
#include <string.h>
#include <strings.h>

/// Kinds of keys, as the default provider calls them: of certificates, and of key exchanges.
static const char *const certificate_keys[] = {"EC", "RSA", "ED25519", NULL};
static const char *const exchange_keys[] = {"X25519", NULL};

enum { most_algorithms = 32 };

static OSSL_PROVIDER *full;
static OSSL_ALGORITHM decoders[most_algorithms + 1];
static OSSL_ALGORITHM key_managers[most_algorithms + 1];

/// Whether one of the names of an algorithm, which colons separate, is among those wanted.
static bool has_name(const char *names, const char *const *wanted) {
    while (names != NULL) {
        const size_t length = strcspn(names, ":");
        for (const char *const *name = wanted; *name != NULL; name++) {
            if (strlen(*name) == length && strncasecmp(names, *name, length) == 0) return true;
        }
        names = names[length] == ':' ? names + length + 1 : NULL;
    }
    return false;
}

/// Whether a decoder reads the public key of a certificate (RFC 5280 §4.1.2.7).
static bool reads_certificate_keys(const OSSL_ALGORITHM *algorithm) {
    const char *properties = algorithm->property_definition;
    return has_name(algorithm->algorithm_names, certificate_keys) &&
           strstr(properties, "input=der") != NULL &&
           strstr(properties, "structure=SubjectPublicKeyInfo") != NULL;
}

static bool manages_keys(const OSSL_ALGORITHM *algorithm) {
    return has_name(algorithm->algorithm_names, certificate_keys) ||
           has_name(algorithm->algorithm_names, exchange_keys);
}

/// Copies what is wanted of an operation's algorithms; the output stays terminated.
static void keep(int operation, bool (*is_wanted)(const OSSL_ALGORITHM *), OSSL_ALGORITHM *output) {
    int no_cache = 0;
    const OSSL_ALGORITHM *next = OSSL_PROVIDER_query_operation(full, operation, &no_cache);
    for (int count = 0; next != NULL && next->algorithm_names != NULL; next++) {
        if (count < most_algorithms && is_wanted(next)) output[count++] = *next;
    }
}

static const OSSL_ALGORITHM *query(void *context, int operation, int *no_cache) {
    (void)context;
    *no_cache = 0;
    switch (operation) {
    case OSSL_OP_DECODER: return decoders;
    case OSSL_OP_KEYMGMT: return key_managers;
    default: return OSSL_PROVIDER_query_operation(full, operation, no_cache);
    }
}

/// Passes on the groups of key exchanges (`TLS-GROUP`).
static int capabilities(void *context, const char *name, OSSL_CALLBACK *callback, void *argument) {
    (void)context;
    return OSSL_PROVIDER_get_capabilities(full, name, callback, argument);
}

static int start(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *core,
                 const OSSL_DISPATCH **functions, void **context) {
    static const OSSL_DISPATCH own[] = {
        {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
        {OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))capabilities},
        {0, NULL},
    };
    (void)handle;
    (void)core;
    *functions = own;
    // The algorithms are the default provider's, and expect its context.
    *context = OSSL_PROVIDER_get0_provider_ctx(full);
    return 1;
}

OSSL_LIB_CTX *dtls_make_algorithms(void) {
    OSSL_LIB_CTX *base = OSSL_LIB_CTX_new();
    full = base == NULL ? NULL : OSSL_PROVIDER_load(base, "default");
    if (full == NULL) {
        OSSL_LIB_CTX_free(base);
        return NULL;
    }
    keep(OSSL_OP_DECODER, reads_certificate_keys, decoders);
    keep(OSSL_OP_KEYMGMT, manages_keys, key_managers);

    OSSL_LIB_CTX *context = OSSL_LIB_CTX_new();
    if (context != NULL && OSSL_PROVIDER_add_builtin(context, "dtls", start) == 1 &&
        OSSL_PROVIDER_load(context, "dtls") != NULL)
        return context;
    OSSL_LIB_CTX_free(context);
    OSSL_PROVIDER_unload(full);
    OSSL_LIB_CTX_free(base);
    full = NULL;
    return NULL;
}
