#pragma once
#include <intel-ipsec-mb.h>

// Wrappers for functions in the library's manager table, which Swift would copy on each call.

static inline void mb_gcm_prepare(const IMB_MGR *mgr, int wide, const void *key,
                                  struct gcm_key_data *prepared) {
    (wide ? mgr->gcm256_pre : mgr->gcm128_pre)(key, prepared);
}

static inline void mb_gcm_encrypt(const IMB_MGR *mgr, int wide, const struct gcm_key_data *key,
                                  struct gcm_context_data *context, uint8_t *output,
                                  const uint8_t *input, uint64_t length, const uint8_t *iv,
                                  const uint8_t *aad, uint64_t aad_length, uint8_t *tag) {
    (wide ? mgr->gcm256_enc : mgr->gcm128_enc)(key, context, output, input, length, iv, aad,
                                               aad_length, tag, 16);
}

// Encrypts a payload in two parts: one already in place and one from elsewhere.
static inline void mb_gcm_encrypt_parts(const IMB_MGR *mgr, int wide,
                                        const struct gcm_key_data *key,
                                        struct gcm_context_data *context, uint8_t *output,
                                        uint64_t prefix_length, const uint8_t *rest,
                                        uint64_t rest_length, const uint8_t *iv,
                                        const uint8_t *aad, uint64_t aad_length) {
    (wide ? mgr->gcm256_init : mgr->gcm128_init)(key, context, iv, aad, aad_length);
    aes_gcm_enc_dec_update_t update = wide ? mgr->gcm256_enc_update : mgr->gcm128_enc_update;
    update(key, context, output, output, prefix_length);
    update(key, context, output + prefix_length, rest, rest_length);
    (wide ? mgr->gcm256_enc_finalize : mgr->gcm128_enc_finalize)(
        key, context, output + prefix_length + rest_length, 16);
}

static inline void mb_gcm_decrypt(const IMB_MGR *mgr, int wide, const struct gcm_key_data *key,
                                  struct gcm_context_data *context, uint8_t *output,
                                  const uint8_t *input, uint64_t length, const uint8_t *iv,
                                  const uint8_t *aad, uint64_t aad_length, uint8_t *tag) {
    (wide ? mgr->gcm256_dec : mgr->gcm128_dec)(key, context, output, input, length, iv, aad,
                                               aad_length, tag, 16);
}

// AES-128 key schedule, and SHA-1 states after both halves of the HMAC key.
struct mb_cm_key {
    DECLARE_ALIGNED(uint32_t schedule[4 * 15], 16);
    uint8_t inner[IMB_SHA1_DIGEST_SIZE_IN_BYTES];
    uint8_t outer[IMB_SHA1_DIGEST_SIZE_IN_BYTES];
};

static inline void mb_cm_prepare(IMB_MGR *mgr, const void *key, const uint8_t hmac_key[20],
                                 struct mb_cm_key *prepared) {
    DECLARE_ALIGNED(uint32_t unused[4 * 15], 16);
    IMB_AES_KEYEXP_128(mgr, key, prepared->schedule, unused);
    uint8_t block[IMB_SHA1_BLOCK_SIZE];
    for (int i = 0; i < IMB_SHA1_BLOCK_SIZE; i++) block[i] = (i < 20 ? hmac_key[i] : 0) ^ 0x36;
    IMB_SHA1_ONE_BLOCK(mgr, block, prepared->inner);
    for (int i = 0; i < IMB_SHA1_BLOCK_SIZE; i++) block[i] ^= 0x36 ^ 0x5c;
    IMB_SHA1_ONE_BLOCK(mgr, block, prepared->outer);
    imb_clear_mem(block, sizeof block);
    imb_clear_mem(unused, sizeof unused);
}

// Encrypts or decrypts `length` bytes in counter mode, at once; `output` may be `input`. Returns 0
// if the library refuses.
static inline int mb_cm_cipher(IMB_MGR *mgr, const struct mb_cm_key *key, const uint8_t *input,
                               uint8_t *output, uint64_t length, const uint8_t iv[16]) {
    IMB_JOB job = {
        .enc_keys = key->schedule,
        .dec_keys = key->schedule,
        .key_len_in_bytes = IMB_KEY_128_BYTES,
        .src = input,
        .dst = output,
        .msg_len_to_cipher_in_bytes = length,
        .iv = iv,
        .iv_len_in_bytes = 16,
        .cipher_mode = IMB_CIPHER_CNTR,
        .cipher_direction = IMB_DIR_ENCRYPT,
    };
    return IMB_SUBMIT_CIPHER_BURST(mgr, &job, 1, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT,
                                   IMB_KEY_128_BYTES) == 1;
}

enum { mb_sha1_tag_length = 12 };

// Prepares a job for the tag of `length` bytes, of which SRTP uses the first 10.
static inline void mb_cm_prepare_tag(IMB_JOB *job, const struct mb_cm_key *key,
                                     const uint8_t *bytes, uint64_t length, uint8_t *tag) {
    job->src = bytes;
    job->hash_start_src_offset_in_bytes = 0;
    job->msg_len_to_hash_in_bytes = length;
    job->u.HMAC._hashed_auth_key_xor_ipad = key->inner;
    job->u.HMAC._hashed_auth_key_xor_opad = key->outer;
    job->auth_tag_output = tag;
    job->auth_tag_output_len_in_bytes = mb_sha1_tag_length;
    job->hash_alg = IMB_AUTH_HMAC_SHA_1;
}

// Computes the tags of up to 128 packets at once. Returns 0 if the library refuses.
static inline int mb_cm_make_tags(IMB_MGR *mgr, IMB_JOB *jobs, uint32_t count) {
    return IMB_SUBMIT_HASH_BURST(mgr, jobs, count, IMB_AUTH_HMAC_SHA_1) == count;
}

// Prefetches `length` bytes from `start` into the cache for reading.
static inline void mb_prefetch(const void *start, uint64_t length) {
    for (uint64_t offset = 0; offset < length; offset += 64) {
        __builtin_prefetch((const char *)start + offset);
    }
}
