/** The worker that `verifyInWorker` starts. */
export {};
