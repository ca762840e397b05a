package conformance;

import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.remoting.RPCHook;

/** For whom the kit works. Clients of 4.3, which know no accounts, get an Account without a hook from launch. */
final class Account {
    /** Signs each request, if ACCESS_KEY and SECRET_KEY name an account; null otherwise. */
    static final RPCHook HOOK = System.getenv("ACCESS_KEY") == null
        ? null : new AclClientRPCHook(new SessionCredentials(System.getenv("ACCESS_KEY"), System.getenv("SECRET_KEY")));

    private Account() {
    }
}
