#pragma once
#include <intel-ipsec-mb.h>

// The library's functions are reached through its manager's table; Swift would copy the table.

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

// As above for a payload in two parts: one that is in place and one that comes from elsewhere.
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

// An AES-128 key schedule, and SHA-1's states after the two halves of HMAC's key.
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

// Ciphers `bytes[start..<end]` in place and hashes `bytes[0..<hashed]` as it is when encrypted.
// Returns 0 if the library refuses.
static inline int mb_cm_run(IMB_MGR *mgr, int encrypt, const struct mb_cm_key *key,
                            uint8_t *bytes, uint64_t start, uint64_t end, uint64_t hashed,
                            const uint8_t iv[16], uint8_t tag[12]) {
    IMB_JOB *job = IMB_GET_NEXT_JOB(mgr);
    // The library takes no cipher job of no length.
    job->cipher_mode = end > start ? IMB_CIPHER_CNTR : IMB_CIPHER_NULL;
    job->cipher_direction = encrypt ? IMB_DIR_ENCRYPT : IMB_DIR_DECRYPT;
    job->chain_order = encrypt ? IMB_ORDER_CIPHER_HASH : IMB_ORDER_HASH_CIPHER;
    job->enc_keys = job->dec_keys = key->schedule;
    job->key_len_in_bytes = 16;
    job->src = bytes;
    job->dst = bytes + start;
    job->cipher_start_src_offset_in_bytes = start;
    job->msg_len_to_cipher_in_bytes = end - start;
    job->iv = iv;
    job->iv_len_in_bytes = 16;
    job->hash_alg = IMB_AUTH_HMAC_SHA_1;
    job->hash_start_src_offset_in_bytes = 0;
    job->msg_len_to_hash_in_bytes = hashed;
    job->u.HMAC._hashed_auth_key_xor_ipad = key->inner;
    job->u.HMAC._hashed_auth_key_xor_opad = key->outer;
    job->auth_tag_output = tag;
    job->auth_tag_output_len_in_bytes = 12;
    job = IMB_SUBMIT_JOB(mgr);
    if (!job) job = IMB_FLUSH_JOB(mgr);
    return job && job->status == IMB_STATUS_COMPLETED;
}

// Fetches what lies behind `start` into the cache, to be read soon.
static inline void mb_prefetch(const void *start, uint64_t length) {
    for (uint64_t offset = 0; offset < length; offset += 64) {
        __builtin_prefetch((const char *)start + offset);
    }
}
