# jobgen slurm --site ./site.toml --nodes 2 -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=48
#SBATCH --gpus-per-node=h100-80:2
#SBATCH --mem=1000G
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=gpu
# jobgen: note: queue gpu of hyphens-dots: the job gets 3 nodes with 2 x h100-80, 96 cores, 1000G; --gpus-per-node TYPE:N or --constraint chooses others: 2 nodes with 4 x nvidia_a100-sxm4-80gb, 64 cores, 500G; 2 nodes with 8 x a100.80gb, 64 cores, 500G; 1 node with 4 x tesla-v100, 40 cores, 375G
# jobgen: note: the launcher is srun, that of site site
