/* Finds librdkafka in the process. */
#include "rdkafka.h"

#include <dlfcn.h>
#include <string.h>

struct rdkafka rd;

const char *rdkafka_load(const char *path) {
    /* It stays open: what is called must not go away. */
    void *object = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
    void *found;
    if (object == NULL)
        return path;
/* POSIX has dlsym return what points to data; a cast of it to a function is undefined in C alone. */
#define RD_FIND(result, name, arguments)                                                                               \
    if ((found = dlsym(object, "rd_kafka_" #name)) == NULL)                                                            \
        return "rd_kafka_" #name;                                                                                      \
    memcpy(&rd.name, &found, sizeof found);
    RD_FUNCTIONS(RD_FIND)
#undef RD_FIND
    return NULL;
}
