// SPDX-License-Identifier: Apache-2.0
package tailor.searchserver;

import java.nio.charset.StandardCharsets;

/** What a request is answered with, whichever HTTP server carries it. */
record Answer(int status, String type, byte[] body) {
    static Answer json(int status, String body) {
        return new Answer(status, "application/json", body.getBytes(StandardCharsets.UTF_8));
    }
}
