#pragma once
#include <nats/nats.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Calls of the NATS client as the registry needs them: without variadic arguments, macros or
// strings that must outlive the call. All calls block, `milliseconds` at most where they wait for
// the broker, and may be made from several threads.

/// Addresses of the brokers, and credentials; unused members are NULL.
struct registry_settings {
    /// URLs with commas between them.
    const char *urls;
    const char *client;
    const char *credentials;
    const char *authority;
    const char *certificate;
    const char *key;
};

static inline natsStatus registry_set_servers(natsOptions *options, const char *urls) {
    enum { LIMIT = 16 };
    const char *servers[LIMIT];
    int count = 0;
    char *copy = strdup(urls);
    if (copy == NULL) return NATS_NO_MEMORY;
    char *rest = copy;
    for (char *url; count < LIMIT && (url = strsep(&rest, ",")) != NULL;) {
        if (*url != 0) servers[count++] = url;
    }
    natsStatus status = natsOptions_SetServers(options, servers, count);
    free(copy);
    return status;
}

static inline natsStatus registry_options(natsOptions **options,
                                          const struct registry_settings *settings) {
    natsStatus status = natsOptions_Create(options);
    if (status == NATS_OK) status = registry_set_servers(*options, settings->urls);
    if (status == NATS_OK) status = natsOptions_SetName(*options, settings->client);
    if (status == NATS_OK) status = natsOptions_SetTimeout(*options, 2000);
    if (status == NATS_OK) status = natsOptions_SetPingInterval(*options, 1000);
    if (status == NATS_OK) status = natsOptions_SetMaxPingsOut(*options, 2);
    if (status == NATS_OK) status = natsOptions_SetMaxReconnect(*options, -1);
    if (status == NATS_OK) status = natsOptions_SetReconnectWait(*options, 250);
    if (status == NATS_OK) status = natsOptions_SetReconnectJitter(*options, 100, 100);
    if (status == NATS_OK) status = natsOptions_SetFailRequestsOnDisconnect(*options, true);
    if (status == NATS_OK && settings->credentials != NULL) {
        status = natsOptions_SetUserCredentialsFromFiles(*options, settings->credentials, NULL);
    }
    if (status == NATS_OK && settings->authority != NULL) {
        status = natsOptions_SetSecure(*options, true);
        if (status == NATS_OK) {
            status = natsOptions_LoadCATrustedCertificates(*options, settings->authority);
        }
    }
    if (status == NATS_OK && settings->certificate != NULL) {
        status = natsOptions_SetSecure(*options, true);
        if (status == NATS_OK) {
            status = natsOptions_LoadCertificatesChain(*options, settings->certificate,
                                                       settings->key);
        }
    }
    return status;
}

/// Connects, and opens JetStream; on failure both pointers are NULL.
static inline natsStatus registry_connect(const struct registry_settings *settings,
                                          int64_t milliseconds, natsConnection **connection,
                                          jsCtx **stream) {
    natsOptions *options = NULL;
    natsStatus status = registry_options(&options, settings);
    *connection = NULL;
    *stream = NULL;
    if (status == NATS_OK) status = natsConnection_Connect(connection, options);
    natsOptions_Destroy(options);
    jsOptions wait;
    if (status == NATS_OK) status = jsOptions_Init(&wait);
    if (status == NATS_OK) {
        wait.Wait = milliseconds;
        status = natsConnection_JetStream(stream, *connection, &wait);
    }
    if (status != NATS_OK) {
        natsConnection_Destroy(*connection);
        *connection = NULL;
    }
    return status;
}

/// Opens a bucket, and creates it if it is missing, on as many brokers as `replicas` says.
static inline natsStatus registry_open_bucket(jsCtx *stream, const char *bucket, int replicas,
                                              kvStore **store) {
    natsStatus status = js_KeyValue(store, stream, bucket);
    if (status != NATS_NOT_FOUND) return status;
    kvConfig config;
    status = kvConfig_Init(&config);
    if (status != NATS_OK) return status;
    config.Bucket = bucket;
    config.Description = "nodes and rooms of sfud";
    config.History = 1;
    config.MaxValueSize = 16384;
    config.Replicas = replicas;
    return js_CreateKeyValue(store, stream, &config);
}

/// Outcome of `registry_write` and `registry_read`.
enum registry_outcome {
    REGISTRY_DONE = 0,
    REGISTRY_CONFLICT = 1,
    REGISTRY_ABSENT = 2,
    /// The broker does not answer, or has no such bucket.
    REGISTRY_FAILED = 3,
};

/// Writes an entry, or deletes it if `bytes` is NULL. Unless `any`, its last revision must be
/// `expected`, 0 for none. Stores the new revision.
static inline enum registry_outcome registry_write(jsCtx *stream, const char *subject,
                                                   const char *bytes, int length, bool any,
                                                   uint64_t expected, uint64_t *revision) {
    natsMsg *message = NULL;
    jsPubAck *ack = NULL;
    jsErrCode code = 0;
    jsPubOptions options;
    natsStatus status = jsPubOptions_Init(&options);
    if (!any && expected == 0) options.ExpectNoMessage = true;
    if (!any && expected != 0) options.ExpectLastSubjectSeq = expected;
    if (status == NATS_OK) status = natsMsg_Create(&message, subject, NULL, bytes, length);
    if (status == NATS_OK && bytes == NULL) {
        status = natsMsgHeader_Set(message, "KV-Operation", "DEL");
    }
    if (status == NATS_OK) status = js_PublishMsg(&ack, stream, message, &options, &code);
    if (status == NATS_OK) *revision = ack->Sequence;
    jsPubAck_Destroy(ack);
    natsMsg_Destroy(message);
    if (status == NATS_OK) return REGISTRY_DONE;
    return code == JSStreamWrongLastSequenceErr ? REGISTRY_CONFLICT : REGISTRY_FAILED;
}

/// Reads an entry; on REGISTRY_DONE the caller destroys the message.
static inline enum registry_outcome registry_read(jsCtx *stream, const char *name,
                                                  const char *subject, natsMsg **message,
                                                  uint64_t *revision, bool *deleted) {
    jsErrCode code = 0;
    natsStatus status = js_GetLastMsg(message, stream, name, subject, NULL, &code);
    if (status == NATS_OK) {
        const char *operation = NULL;
        *revision = natsMsg_GetSequence(*message);
        *deleted = natsMsgHeader_Get(*message, "KV-Operation", &operation) == NATS_OK;
        return REGISTRY_DONE;
    }
    return code == JSNoMessageFoundErr ? REGISTRY_ABSENT : REGISTRY_FAILED;
}

/// Creates the journal's stream if it is missing. No message is ever dropped for a new one: beyond
/// `bytes` the broker refuses.
static inline natsStatus registry_open_journal(jsCtx *stream, const char *name,
                                               const char *subjects, int64_t bytes,
                                               int replicas) {
    jsStreamInfo *info = NULL;
    natsStatus status = js_GetStreamInfo(&info, stream, name, NULL, NULL);
    jsStreamInfo_Destroy(info);
    if (status != NATS_NOT_FOUND) return status;
    jsStreamConfig config;
    status = jsStreamConfig_Init(&config);
    if (status != NATS_OK) return status;
    config.Name = name;
    config.Description = "journals of sfud's rooms";
    config.Subjects = &subjects;
    config.SubjectsLen = 1;
    config.Discard = js_DiscardNew;
    config.MaxBytes = bytes;
    config.Replicas = replicas;
    return js_AddStream(NULL, stream, &config, NULL, NULL);
}

/// Removes the messages of a subject before a sequence.
static inline natsStatus registry_purge(jsCtx *stream, const char *name, const char *subject,
                                        uint64_t before, int64_t milliseconds) {
    jsOptions options;
    natsStatus status = jsOptions_Init(&options);
    options.Wait = milliseconds;
    options.Stream.Purge.Subject = subject;
    options.Stream.Purge.Sequence = before;
    return status == NATS_OK ? js_PurgeStream(stream, name, &options, NULL) : status;
}

/// Lists the subjects of a stream that have messages; on NATS_OK the caller destroys the list.
static inline natsStatus registry_list(jsCtx *stream, const char *name, const char *subjects,
                                       int64_t milliseconds, jsStreamInfo **info) {
    jsOptions options;
    *info = NULL;
    natsStatus status = jsOptions_Init(&options);
    options.Wait = milliseconds;
    options.Stream.Info.SubjectsFilter = subjects;
    return status == NATS_OK ? js_GetStreamInfo(info, stream, name, &options, NULL) : status;
}

/// Number of subjects in a list.
static inline int registry_listed(const jsStreamInfo *info) {
    return info == NULL || info->State.Subjects == NULL ? 0 : info->State.Subjects->Count;
}

/// Subject of a list, at an index below their number.
static inline const char *registry_subject(const jsStreamInfo *info, int index) {
    return info->State.Subjects->List[index].Subject;
}

/// Sequence of the last message that the stream had when it was listed.
static inline uint64_t registry_end(const jsStreamInfo *info) {
    return info == NULL ? 0 : info->State.LastSeq;
}

/// Reads the messages of a subject, the first one first.
static inline natsStatus registry_subscribe(jsCtx *stream, const char *name, const char *subject,
                                            natsSubscription **subscription) {
    jsSubOptions options;
    natsStatus status = jsSubOptions_Init(&options);
    options.Stream = name;
    options.Ordered = true;
    return status == NATS_OK
               ? js_SubscribeSync(subscription, stream, subject, NULL, &options, NULL)
               : status;
}

/// Sequence of a message in its stream; 0 if it has none.
static inline uint64_t registry_sequence(natsMsg *message) {
    jsMsgMetaData *data = NULL;
    uint64_t sequence = 0;
    if (natsMsg_GetMetaData(&data, message) == NATS_OK) sequence = data->Sequence.Stream;
    jsMsgMetaData_Destroy(data);
    return sequence;
}

/// Watches all entries of a bucket, the present ones first.
static inline natsStatus registry_watch(kvStore *store, int64_t milliseconds,
                                        kvWatcher **watcher) {
    kvWatchOptions options;
    natsStatus status = kvWatchOptions_Init(&options);
    options.Timeout = milliseconds;
    return status == NATS_OK ? kvStore_WatchAll(watcher, store, &options) : status;
}
