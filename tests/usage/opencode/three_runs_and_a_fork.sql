-- Tables of opencode 1.18.33 and their rows after three runs and a fork against the mock model; its other tables are left out.
CREATE TABLE `session` (
  `id` text PRIMARY KEY,
  `project_id` text NOT NULL,
  `workspace_id` text,
  `parent_id` text,
  `slug` text NOT NULL,
  `directory` text NOT NULL,
  `path` text,
  `title` text NOT NULL,
  `version` text NOT NULL,
  `share_url` text,
  `summary_additions` integer,
  `summary_deletions` integer,
  `summary_files` integer,
  `summary_diffs` text,
  `metadata` text,
  `cost` real DEFAULT 0 NOT NULL,
  `tokens_input` integer DEFAULT 0 NOT NULL,
  `tokens_output` integer DEFAULT 0 NOT NULL,
  `tokens_reasoning` integer DEFAULT 0 NOT NULL,
  `tokens_cache_read` integer DEFAULT 0 NOT NULL,
  `tokens_cache_write` integer DEFAULT 0 NOT NULL,
  `revert` text,
  `permission` text,
  `agent` text,
  `model` text,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `time_compacting` integer,
  `time_archived` integer,
  CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
);
CREATE TABLE `message` (
  `id` text PRIMARY KEY,
  `session_id` text NOT NULL,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `data` text NOT NULL,
  CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
);
CREATE TABLE `session_message` (
  `id` text PRIMARY KEY,
  `session_id` text NOT NULL,
  `type` text NOT NULL,
  `seq` integer NOT NULL,
  `time_created` integer NOT NULL,
  `time_updated` integer NOT NULL,
  `data` text NOT NULL,
  CONSTRAINT `fk_session_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
);
INSERT INTO `session` VALUES ('ses_dde124e17ffeV80n8pFp7YNHhe', 'global', NULL, NULL, 'misty-star', '/home/dev/shop', '', 'Mock title', '1.18.33', NULL, 0, 0, 0, NULL, NULL, 0.00038, 300, 40, 0, 2000, 0, NULL, '[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]', 'build', '{"id":"mock-model","providerID":"mock","variant":"default"}', 1795865555432, 1795865563738, NULL, NULL);
INSERT INTO `session` VALUES ('ses_dde122561ffel2dpPWyZZ0J9Pn', 'global', NULL, NULL, 'witty-eagle', '/home/dev/shop', '', 'Mock title', '1.18.33', NULL, 0, 0, 0, NULL, NULL, 0.00057, 450, 60, 0, 3000, 0, NULL, '[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]', 'build', '{"id":"mock-model","providerID":"mock","variant":"default"}', 1795865565854, 1795865569060, NULL, NULL);
INSERT INTO `session` VALUES ('ses_dde10ee68ffe4CHh5kv72tlqJI', 'global', NULL, NULL, 'tidy-pixel', '/home/dev/shop', '', 'Mock title (fork #1)', '1.18.33', NULL, 0, 0, 0, NULL, NULL, 0.00076, 600, 80, 0, 4000, 0, NULL, NULL, 'build', '{"id":"mock-model","providerID":"mock","variant":"default"}', 1795865645463, 1795865647700, NULL, NULL);
INSERT INTO `message` VALUES ('msg_221edb23b0011rgC82GZSA8A7U', 'ses_dde124e17ffeV80n8pFp7YNHhe', 1795865555515, 1795865557241, '{"role":"user","time":{"created":1795865555515},"agent":"build","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_221edb6f7001B0z5RbuG6O7x44', 'ses_dde124e17ffeV80n8pFp7YNHhe', 1795865556727, 1795865559067, '{"parentID":"msg_221edb23b0011rgC82GZSA8A7U","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/shop","root":"/home/dev/shop"},"cost":0.00019,"tokens":{"total":1170,"input":150,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"mock-model","providerID":"mock","time":{"created":1795865556727,"completed":1795865559066},"finish":"stop"}');
INSERT INTO `message` VALUES ('msg_221edc9ae001J9LRs2iiisEFuJ', 'ses_dde124e17ffeV80n8pFp7YNHhe', 1795865561518, 1795865562727, '{"role":"user","time":{"created":1795865561518},"agent":"build","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_221edce0e0017l1A1LUNz4ygTE', 'ses_dde124e17ffeV80n8pFp7YNHhe', 1795865562639, 1795865563732, '{"parentID":"msg_221edc9ae001J9LRs2iiisEFuJ","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/shop","root":"/home/dev/shop"},"cost":0.00019,"tokens":{"total":1170,"input":150,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"mock-model","providerID":"mock","time":{"created":1795865562639,"completed":1795865563731},"finish":"tool-calls"}');
INSERT INTO `message` VALUES ('msg_221eddb0f001WmrNmGOPFxj7yk', 'ses_dde122561ffel2dpPWyZZ0J9Pn', 1795865565968, 1795865568929, '{"role":"user","time":{"created":1795865565968},"agent":"build","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[{"file":"hello.txt","patch":"Index: hello.txt\n===================================================================\n--- hello.txt\t\n+++ hello.txt\t\n@@ -0,0 +1,1 @@\n+hello\n","additions":1,"deletions":0,"status":"added"}]}}');
INSERT INTO `message` VALUES ('msg_221eddebc001rC3gmYHSoXYkFP', 'ses_dde122561ffel2dpPWyZZ0J9Pn', 1795865566908, 1795865568255, '{"parentID":"msg_221eddb0f001WmrNmGOPFxj7yk","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/shop","root":"/home/dev/shop"},"cost":0.00019,"tokens":{"total":1170,"input":150,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"mock-model","providerID":"mock","time":{"created":1795865566908,"completed":1795865568253},"finish":"tool-calls"}');
INSERT INTO `message` VALUES ('msg_221ede405001ZkpyVNMfLjmr46', 'ses_dde122561ffel2dpPWyZZ0J9Pn', 1795865568261, 1795865568730, '{"parentID":"msg_221eddb0f001WmrNmGOPFxj7yk","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/shop","root":"/home/dev/shop"},"cost":0.00019,"tokens":{"total":1170,"input":150,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"mock-model","providerID":"mock","time":{"created":1795865568261,"completed":1795865568729},"finish":"tool-calls"}');
INSERT INTO `message` VALUES ('msg_221ede5df001QSJagIHE6V4wLe', 'ses_dde122561ffel2dpPWyZZ0J9Pn', 1795865568735, 1795865569026, '{"parentID":"msg_221eddb0f001WmrNmGOPFxj7yk","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/shop","root":"/home/dev/shop"},"cost":0.00019,"tokens":{"total":1170,"input":150,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"mock-model","providerID":"mock","time":{"created":1795865568735,"completed":1795865569024},"finish":"stop"}');
INSERT INTO `message` VALUES ('msg_221ef11a1001FHcfPrP16CJoqP', 'ses_dde10ee68ffe4CHh5kv72tlqJI', 1795865565968, 1795865645475, '{"role":"user","time":{"created":1795865565968},"agent":"build","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[{"file":"hello.txt","patch":"Index: hello.txt\n===================================================================\n--- hello.txt\t\n+++ hello.txt\t\n@@ -0,0 +1,1 @@\n+hello\n","additions":1,"deletions":0,"status":"added"}]}}');
INSERT INTO `message` VALUES ('msg_221ef157d0013KIAz6jKYsWE1q', 'ses_dde10ee68ffe4CHh5kv72tlqJI', 1795865566908, 1795865646462, '{"parentID":"msg_221ef11a1001FHcfPrP16CJoqP","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/shop","root":"/home/dev/shop"},"cost":0.00019,"tokens":{"total":1170,"input":150,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"mock-model","providerID":"mock","time":{"created":1795865566908,"completed":1795865568253},"finish":"tool-calls"}');
INSERT INTO `message` VALUES ('msg_221ef1589001vVvSS0p4AFvetw', 'ses_dde10ee68ffe4CHh5kv72tlqJI', 1795865568261, 1795865646474, '{"parentID":"msg_221ef11a1001FHcfPrP16CJoqP","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/shop","root":"/home/dev/shop"},"cost":0.00019,"tokens":{"total":1170,"input":150,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"mock-model","providerID":"mock","time":{"created":1795865568261,"completed":1795865568729},"finish":"tool-calls"}');
INSERT INTO `message` VALUES ('msg_221ef1591001HIrJXjuIkdafnm', 'ses_dde10ee68ffe4CHh5kv72tlqJI', 1795865568735, 1795865646499, '{"parentID":"msg_221ef11a1001FHcfPrP16CJoqP","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/shop","root":"/home/dev/shop"},"cost":0.00019,"tokens":{"total":1170,"input":150,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"mock-model","providerID":"mock","time":{"created":1795865568735,"completed":1795865569024},"finish":"stop"}');
INSERT INTO `message` VALUES ('msg_221ef15d0001RL0PASIpF1tXjV', 'ses_dde10ee68ffe4CHh5kv72tlqJI', 1795865646544, 1795865646673, '{"role":"user","time":{"created":1795865646544},"agent":"build","model":{"providerID":"mock","modelID":"mock-model"},"summary":{"diffs":[]}}');
INSERT INTO `message` VALUES ('msg_221ef15f3001uYTjDNnN4BVapa', 'ses_dde10ee68ffe4CHh5kv72tlqJI', 1795865646579, 1795865647694, '{"parentID":"msg_221ef15d0001RL0PASIpF1tXjV","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/shop","root":"/home/dev/shop"},"cost":0.00019,"tokens":{"total":1170,"input":150,"output":20,"reasoning":0,"cache":{"write":0,"read":1000}},"modelID":"mock-model","providerID":"mock","time":{"created":1795865646579,"completed":1795865647692},"finish":"stop"}');
